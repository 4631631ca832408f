//! The table that `bench/RESULTS.md` keeps.

/// A measured case: what it is, the figures, the ratio and the bound that it has to keep.
struct Line {
    case: String,
    figures: String,
    ratio: Option<(f64, Bound)>,
}

#[derive(Clone, Copy)]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Bound {
    fn holds(self, ratio: f64) -> bool {
        match self {
            Self::AtMost(bound) => ratio <= bound,
            Self::AtLeast(bound) => ratio >= bound,
        }
    }

    fn text(self) -> String {
        match self {
            Self::AtMost(bound) => format!("≤ {bound}"),
            Self::AtLeast(bound) => format!("≥ {bound}"),
        }
    }
}

#[derive(Default)]
pub(crate) struct Report {
    lines: Vec<Line>,
}

impl Report {
    pub(crate) fn figure(&mut self, case: &str, figures: String) {
        eprintln!("{case}: {figures}");
        self.lines.push(Line { case: case.to_owned(), figures, ratio: None });
    }

    pub(crate) fn ratio(&mut self, case: &str, figures: String, ratio: f64, bound: Bound) {
        eprintln!("{case}: {figures}, ratio {ratio:.2} (wanted {})", bound.text());
        self.lines.push(Line { case: case.to_owned(), figures, ratio: Some((ratio, bound)) });
    }

    pub(crate) fn print(&self) {
        println!("| case | figures | ratio | wanted | |\n| --- | --- | --- | --- | --- |");
        for line in &self.lines {
            let (ratio, wanted, verdict) = match line.ratio {
                Some((ratio, bound)) => {
                    let verdict = if bound.holds(ratio) { "ok" } else { "MISSED" };
                    (format!("{ratio:.2}"), bound.text(), verdict)
                }
                None => (String::new(), String::new(), ""),
            };
            println!("| {} | {} | {ratio} | {wanted} | {verdict} |", line.case, line.figures);
        }
    }
}
