// FerryClientCore
