"""Jobs: ordered, run, watched and cancelled."""
