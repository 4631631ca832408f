#!/bin/sh
# Shows the records of a topic from the beginning, one line of JSON each, and ends at its end:
#   kcat.sh BROKERS TOPIC
# Without -e it goes on and waits for more. It shows everything, duplicates too.
exec kcat -C -b "$1" -t "$2" -o beginning -e -q -J
