SELECT succeeded, dead, cancelled, expired FROM flexiq_queues WHERE queue = ?1
