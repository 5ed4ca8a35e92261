"""Rehearsals: a scenario on a real Apache Kafka, judged by the checker of simulated runs."""
