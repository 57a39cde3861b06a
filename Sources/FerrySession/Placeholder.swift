// FerrySession
