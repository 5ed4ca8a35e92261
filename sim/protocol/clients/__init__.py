"""Client libraries: producer, consumer, share consumer, admin."""
