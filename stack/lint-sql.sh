#!/usr/bin/env bash
# Where SQL may live. Prints file:line for each breach and fails:
#   - statements in string literals of src/ outside src/store
#   - a DELETE on payment_outbox_pending in sql/ outside the function that completes
#   - the state DISPATCHING, which does not exist, in sql/ or src/
# lint-sql.sh [DIR] looks at another project.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Files that may delete pending rows, separated by spaces.
COMPLETION_FILES="sql/functions/complete_outbox_batch.sql"

cd "${1:-$PROJECT}"
folders=()
for folder in sql src; do
  if [[ -d $folder ]]; then folders+=("$folder"); fi
done
[[ ${#folders[@]} -gt 0 ]] || exit 0

find "${folders[@]}" -type f -print0 | sort -z |
  COMPLETION_FILES=$COMPLETION_FILES perl -0 -e '
    use strict;
    use warnings;

    my %completion = map { $_ => 1 } split " ", $ENV{COMPLETION_FILES};
    my $breaches = 0;

    sub breach {
      my ($file, $text, $offset, $why) = @_;
      my $line = 1 + (substr($text, 0, $offset) =~ tr/\n//);
      print STDERR "$file:$line: $why\n";
      $breaches++;
    }

    # In capitals a statement is one wherever it stands in the literal; in small
    # letters only where a statement could begin, since "update" is English too.
    my $loud = qr/\b(?:SELECT\s+\S|INSERT\s+INTO\b|UPDATE\s+\S+\s+(?:\w+\s+)*SET\b|DELETE\s+FROM\b|MERGE\s+INTO\b|TRUNCATE\s+\S)/;
    my $begin = qr/(?:^|[\n;(])(?:\s|\\n|\\)*/;
    my $quiet = qr/$begin\K(?:select\s+(?:.*?\sfrom\s|[\w.]+\()|insert\s+into\s|update\s+\S+\s+(?:\w+\s+)*set\s|delete\s+from\s|merge\s+into\s)/is;

    # Comments and character literals are skipped, so that quotes inside them open nothing.
    sub check_literals {
      my ($file, $text) = @_;
      while ($text =~ m{ //[^\n]* | /\*.*?\*/
                       | \x27(?:\\.[^\x27]*|[^\\\x27])\x27
                       | \br(\#*)"(?<raw>.*?)"\1
                       | "(?<plain>(?:[^"\\]|\\.)*)" }gsx) {
        my $literal = $+{raw} // $+{plain} // next;
        my $offset = $-[0] + index($&, $literal);
        # A backslash at the end of a line joins it to the next; blanks keep the offsets true.
        $literal =~ s/\\(?=\n)/ /g;
        next unless $literal =~ $loud || $literal =~ $quiet;
        breach($file, $text, $offset + $-[0], "SQL in a string literal: statements belong to src/store");
      }
    }

    # Comments become blanks, so that offsets stay true; what looks like one in a string stays.
    sub without_sql_comments {
      my ($text) = @_;
      $text =~ s{(\x27[^\x27]*\x27)|(--[^\n]*|/\*.*?\*/)}{ my $c = $1 // $2; $c =~ s/[^\n]/ /g unless defined $1; $c }gse;
      return $text;
    }

    while (my $file = <STDIN>) {
      chomp $file;
      open my $handle, "<", $file or die "$file: $!\n";
      my $text = do { local $/; <$handle> } // "";
      while ($text =~ /\bDISPATCHING\b/gi) {
        breach($file, $text, $-[0], "DISPATCHING: there is no such state");
      }
      if ($file =~ /\.rs$/ && $file !~ m{^src/store(?:/|\.rs$)}) {
        check_literals($file, $text);
      }
      if ($file =~ /\.sql$/ && !$completion{$file}) {
        my $code = without_sql_comments($text);
        while ($code =~ /\bDELETE\s+FROM\s+(?:ONLY\s+)?(?:"?\w+"?\s*\.\s*)?"?payment_outbox_pending\b/gi) {
          breach($file, $text, $-[0], "DELETE on payment_outbox_pending: only completion deletes pending rows");
        }
      }
    }
    exit($breaches ? 1 : 0);
  '
