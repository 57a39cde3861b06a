// FerryAPNS
