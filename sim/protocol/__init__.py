"""What Kafka decides: pure state machines, an event in, effects out."""
