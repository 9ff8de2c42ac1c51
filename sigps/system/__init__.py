"""The system: master, worker managers, workers, and what crosses between ranks."""
