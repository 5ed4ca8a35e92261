"""Client and connection quotas on one broker (``ClientQuotaManager``, ``ConnectionQuotas``)."""
