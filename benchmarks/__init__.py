"""Speed and memory on real pages, as ratios within one run. `make bench` runs them all."""
