def problems(): return []
