.DEFAULT_GOAL := help
.PHONY: help up demo break down reset test soak lint fmt bench bench-sql psql

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

up: ## Start PostgreSQL, Kafka (Docker if it answers, else native) and the bridge, print the connection strings
	@stack/up.sh

demo: ## Send payments over Kafka and HTTP and see them arrive in order
	@stack/demo.sh

break: ## Break the bank and the broker, and see that no payment is lost
	@stack/break.sh

down: ## Stop what `make up` started; the data stays
	@stack/down.sh

reset: ## Stop what `make up` started and forget its data
	@stack/reset.sh

test: ## Lint and test on servers of its own, which are gone afterwards
	@stack/test.sh

soak: ## The tests of exactly once, EXACTLY_ONCE_ROUNDS (100) times over, on servers of its own
	@stack/soak.sh

lint: ## Formatting, clippy, licences, shell scripts, and where SQL may live
	@stack/lint.sh

fmt: ## Format the Rust code
	@cargo fmt

bench: ## Measure the bridge on a database and a broker of its own
	@stack/bench.sh bridge

bench-sql: ## Measure the SQL functions
	@stack/bench.sh sql

psql: ## Open psql on the database of `make up`
	@stack/psql.sh
