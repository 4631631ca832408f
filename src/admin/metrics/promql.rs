//! What an expression of Prometheus asks for. promtool checks the grammar; this finds the names.

/// A metric, and the labels that select from it with their values.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Selector {
    pub(super) metric: String,
    pub(super) matchers: Vec<(String, String)>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) selectors: Vec<Selector>,
    /// Labels by which it groups or joins.
    pub(super) grouped_by: Vec<String>,
}

const GROUPING: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];
const OPERATORS: [&str; 5] = ["and", "or", "unless", "offset", "bool"];

#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Text(String),
    Sign(char),
}

pub(super) fn asked(expression: &str) -> Asked {
    let tokens = tokens(expression);
    let mut asked = Asked::default();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let next = tokens.get(at + 1);
        at += 1;
        let Token::Word(word) = token else { continue };
        if GROUPING.contains(&word.as_str()) {
            let inside =
                tokens[at..].iter().skip(1).take_while(|token| **token != Token::Sign(')'));
            let labels: Vec<&Token> = inside.collect();
            at += labels.len() + 1;
            asked.grouped_by.extend(labels.into_iter().filter_map(word_of));
        } else if !OPERATORS.contains(&word.as_str()) && !is_applied(next) {
            let (matchers, length) = matchers(&tokens[at..]);
            at += length;
            asked.selectors.push(Selector { metric: word.clone(), matchers });
        }
    }
    asked
}

/// A function stands before its argument, an aggregation perhaps before its grouping.
fn is_applied(next: Option<&Token>) -> bool {
    match next {
        Some(Token::Sign('(')) => true,
        Some(Token::Word(word)) => word == "by" || word == "without",
        _ => false,
    }
}

/// What stands in braces, and how many tokens that is.
fn matchers(tokens: &[Token]) -> (Vec<(String, String)>, usize) {
    if tokens.first() != Some(&Token::Sign('{')) {
        return (Vec::new(), 0);
    }
    let inside: Vec<&Token> =
        tokens[1..].iter().take_while(|token| **token != Token::Sign('}')).collect();
    let mut found = Vec::new();
    let mut label = String::new();
    for token in &inside {
        match token {
            Token::Word(word) => label.clone_from(word),
            Token::Text(value) => found.push((label.clone(), value.clone())),
            Token::Sign(_) => {}
        }
    }
    (found, inside.len() + 2)
}

fn word_of(token: &Token) -> Option<String> {
    match token {
        Token::Word(word) => Some(word.clone()),
        Token::Text(_) | Token::Sign(_) => None,
    }
}

/// Numbers, ranges and spaces are left out.
fn tokens(expression: &str) -> Vec<Token> {
    let mut rest = expression;
    let mut tokens = Vec::new();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => 2 + rest[1..].find('"').expect("a text has an end"),
            '[' => 1 + rest.find(']').expect("a range has an end"),
            _ if is_in_word(first) => rest.find(|c| !is_in_word(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        match first {
            '"' => tokens.push(Token::Text(token.trim_matches('"').to_owned())),
            '[' | '.' => {}
            _ if first.is_ascii_digit() || first.is_whitespace() => {}
            _ if is_in_word(first) => tokens.push(Token::Word(token.to_owned())),
            _ => tokens.push(Token::Sign(first)),
        }
    }
    tokens
}

fn is_in_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == ':'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selector(metric: &str, matchers: &[(&str, &str)]) -> Selector {
        let owned = |(label, value): &(&str, &str)| ((*label).to_owned(), (*value).to_owned());
        Selector { metric: metric.to_owned(), matchers: matchers.iter().map(owned).collect() }
    }

    #[test]
    fn metrics_are_told_from_functions_operators_and_labels() {
        let found = asked(
            "sum by (job) (rate(a_total{state=~\"X|Y\", job=\"t\"}[5m])) / max(b offset 15m) > 0.2\n  \
             unless on (job, rail) histogram_quantile(0.99, sum by (le) (rate(c_bucket[5m]))) or absent(up)",
        );
        assert_eq!(
            found.selectors,
            [
                selector("a_total", &[("state", "X|Y"), ("job", "t")]),
                selector("b", &[]),
                selector("c_bucket", &[]),
                selector("up", &[]),
            ]
        );
        assert_eq!(found.grouped_by, ["job", "job", "rail", "le"]);
    }

    #[test]
    fn an_expression_may_be_one_name() {
        assert_eq!(asked("up").selectors, [selector("up", &[])]);
    }
}
