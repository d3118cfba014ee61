//! Random identifiers in the form of a UUID.

/// Returns a new identifier.
pub(crate) fn random() -> String {
    let hex = format!("{:032x}", fastrand::u128(..));
    let (a, rest) = hex.split_at(8);
    let (b, rest) = rest.split_at(4);
    let (c, rest) = rest.split_at(4);
    let (d, e) = rest.split_at(4);
    format!("{a}-{b}-4{}-a{}-{e}", &c[1..], &d[1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_has_the_form_of_a_uuid() {
        let id = random();
        let lengths: Vec<_> = id.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert_ne!(id, random());
    }
}
