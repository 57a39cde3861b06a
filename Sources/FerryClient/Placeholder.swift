// FerryClient
