// FerryAPI
