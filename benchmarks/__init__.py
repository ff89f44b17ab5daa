"""What fewtags costs, measured: `make bench`. See docs/performance.md."""
