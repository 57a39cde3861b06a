// FerryWire
