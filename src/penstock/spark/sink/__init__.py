"""format("nsq") as a sink."""
