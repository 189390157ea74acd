"""The costs of operations decide which of them a schedule runs again."""
