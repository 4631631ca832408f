//! What work waits for, in words that an operator can act on.

use crate::store::WaitingRail;

/// A rail as it is at the moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct RailSign<'a> {
    pub(super) name: &'a str,
    pub(super) open_breakers: usize,
    pub(super) in_flight: usize,
}

/// What the work of all rails waits for; nothing when there is none. A lane that is due later is no work yet,
/// unless it was given back because its destination is unavailable.
pub(super) fn reason(rails: &[RailSign<'_>], waiting: &[WaitingRail]) -> Option<String> {
    let reasons: Vec<String> = rails.iter().filter_map(|rail| of_rail(rail, waiting)).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

fn of_rail(rail: &RailSign<'_>, waiting: &[WaitingRail]) -> Option<String> {
    let RailSign { name, open_breakers, in_flight } = *rail;
    let lane = waiting.iter().find(|lane| lane.rail_type == name);
    match (open_breakers, in_flight, lane) {
        (0, 0, Some(lane)) if lane.is_due => {
            Some(format!("rail {name}: rows are due and none could be claimed"))
        }
        (0, 0, _) | (_, 0, None) => None,
        (0, rows, _) => Some(format!("rail {name}: {rows} rows were sent and none was answered")),
        (open, _, _) => Some(format!(
            "rail {name}: {open} of its destinations cannot be reached, the log says why"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rail(name: &str, open_breakers: usize, in_flight: usize) -> RailSign<'_> {
        RailSign { name, open_breakers, in_flight }
    }

    fn lane(rail_type: &str, is_due: bool) -> WaitingRail {
        WaitingRail { rail_type: rail_type.to_owned(), is_due }
    }

    #[test]
    fn an_idle_rail_waits_for_nothing_also_when_its_destination_is_down_or_rows_are_due_later() {
        assert_eq!(reason(&[rail("kafka", 0, 0), rail("bank", 1, 0)], &[]), None);
        assert_eq!(reason(&[rail("kafka", 0, 0)], &[lane("kafka", false)]), None);
        assert_eq!(reason(&[rail("kafka", 0, 0)], &[lane("other", true)]), None);
    }

    #[test]
    fn each_rail_that_waits_has_its_reason() {
        let rails = [rail("kafka", 1, 0), rail("bank", 0, 40), rail("ach", 0, 0), rail("b", 1, 1)];
        let said = reason(&rails, &[lane("kafka", false), lane("ach", true)]).unwrap();
        assert_eq!(
            said.split("; ").collect::<Vec<_>>(),
            [
                "rail kafka: 1 of its destinations cannot be reached, the log says why",
                "rail bank: 40 rows were sent and none was answered",
                "rail ach: rows are due and none could be claimed",
                "rail b: 1 of its destinations cannot be reached, the log says why",
            ]
        );
    }
}
