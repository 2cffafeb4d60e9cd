//! The order in which a person counts: f2 before f10.

use std::cmp::Ordering;

/// Compares texts with each run of digits as one number; equal only where the texts are.
#[must_use]
pub fn compare(a: &str, b: &str) -> Ordering {
    let (left, right) = (a.as_bytes(), b.as_bytes());
    let (mut i, mut j) = (0, 0);
    while i < left.len() && j < right.len() {
        if left[i].is_ascii_digit() && right[j].is_ascii_digit() {
            let (m, n) = (run(left, i), run(right, j));
            let (x, y) = (significant(&left[i..m]), significant(&right[j..n]));
            match x.len().cmp(&y.len()).then_with(|| x.cmp(y)) {
                Ordering::Equal => (i, j) = (m, n),
                other => return other,
            }
        } else if left[i] == right[j] {
            i += 1;
            j += 1;
        } else {
            return left[i].cmp(&right[j]);
        }
    }
    // Equal but for leading zeros: the order must tell them apart all the same.
    (left.len() - i).cmp(&(right.len() - j)).then_with(|| a.cmp(b))
}

/// [`compare`], value by value.
#[must_use]
pub fn compare_all(a: &[Box<str>], b: &[Box<str>]) -> Ordering {
    for (x, y) in a.iter().zip(b) {
        match compare(x, y) {
            Ordering::Equal => {}
            other => return other,
        }
    }
    a.len().cmp(&b.len())
}

/// The beginning of a text as a number: of two texts with other beginnings the one with the smaller number is first in
/// the order of [`compare`]; with the same, their texts decide.
#[must_use]
pub(crate) fn prefix(text: &str) -> u128 {
    const BYTES: usize = 16;
    let text = text.as_bytes();
    let mut prefix = [0_u8; BYTES];
    let mut filled = 0;
    let mut at = 0;
    while at < text.len() && filled < BYTES {
        if !text[at].is_ascii_digit() {
            prefix[filled] = text[at];
            filled += 1;
            at += 1;
            continue;
        }
        // How many digits, which stands among other characters where digits do, and then the digits.
        let end = run(text, at);
        let digits = significant(&text[at..end]);
        at = end;
        match u8::try_from(digits.len()) {
            Ok(count @ 0..9) => prefix[filled] = b'0' + count,
            _ => {
                prefix[filled] = b'9';
                break;
            }
        }
        filled += 1;
        for digit in digits.iter().take(BYTES - filled) {
            prefix[filled] = *digit;
            filled += 1;
        }
    }
    u128::from_be_bytes(prefix)
}

/// Where the digits end that begin at `from`.
fn run(text: &[u8], from: usize) -> usize {
    text[from..].iter().position(|c| !c.is_ascii_digit()).map_or(text.len(), |n| from + n)
}

fn significant(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|c| **c == b'0').count();
    &digits[zeros..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_are_counted() {
        let mut names = ["f10", "f2", "f1-10", "f1-9", "f", "f02", "e99", "f2a"];
        names.sort_by(|a, b| compare(a, b));
        assert_eq!(names, ["e99", "f", "f1-9", "f1-10", "f02", "f2", "f2a", "f10"]);
        assert_eq!(compare("99999999999999999999999", "100000000000000000000000"), Ordering::Less);
    }

    proptest::proptest! {
        #[test]
        fn it_is_an_order(a in "[a0-2]{0,6}", b in "[a0-2]{0,6}", c in "[a0-2]{0,6}") {
            assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
            assert_eq!(compare(&a, &b) == Ordering::Equal, a == b);
            if compare(&a, &b).is_le() && compare(&b, &c).is_le() {
                assert!(compare(&a, &c).is_le());
            }
        }
    }
}
