// FerryRouting
