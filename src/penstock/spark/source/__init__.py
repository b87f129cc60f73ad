"""format("nsq") as a source."""
