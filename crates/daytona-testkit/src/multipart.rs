//! Forms with files, as in `multipart/form-data`.

use bytes::Bytes;

/// A field of a form.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) content: Bytes,
}

/// Reads the fields of a form whose `Content-Type` is given. Returns `None` if it is not one.
pub(crate) fn parse(content_type: &str, body: &Bytes) -> Option<Vec<Field>> {
    let boundary = content_type.split_once("boundary=")?.1;
    let boundary = boundary.split(';').next()?.trim().trim_matches('"');
    let (first, between) = (format!("--{boundary}"), format!("\r\n--{boundary}"));
    let mut position = find(body, first.as_bytes(), 0)? + first.len();
    let mut fields = Vec::new();
    while !body[position..].starts_with(b"--") {
        let head_end = find(body, b"\r\n\r\n", position)?;
        let start = head_end + 4;
        let end = find(body, between.as_bytes(), start)?;
        let head = String::from_utf8_lossy(&body[position..head_end]);
        fields.push(Field {
            name: name(&head)?,
            content: body.slice(start..end),
        });
        position = end + between.len();
    }
    Some(fields)
}

/// Returns the name in the headers of a field.
fn name(head: &str) -> Option<String> {
    let parameters = head.split([';', '\r', '\n']).map(str::trim);
    let mut names = parameters.filter_map(|it| it.strip_prefix("name="));
    names.next().map(|name| name.trim_matches('"').to_owned())
}

fn find(bytes: &[u8], wanted: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    memchr::memmem::find(rest, wanted).map(|position| from + position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_separated_by_the_boundary() {
        let body = "--B\r\nContent-Disposition: form-data; name=\"files[0].path\"\r\n\r\na b\r\n--B\r\nContent-Disposition: form-data; name=\"files[0].file\"; filename=\"x\"\r\nContent-Type: text/plain\r\n\r\n\r\n--b\r\n\r\n--B--\r\n";
        let fields = parse("multipart/form-data; boundary=\"B\"", &Bytes::from(body)).unwrap();
        let fields: Vec<_> = fields
            .iter()
            .map(|it| (it.name.as_str(), &*it.content))
            .collect();
        assert_eq!(
            fields,
            [
                ("files[0].path", &b"a b"[..]),
                ("files[0].file", b"\r\n--b\r\n")
            ]
        );
    }

    #[test]
    fn a_form_without_its_end_is_none() {
        let body = Bytes::from("--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nhalf");
        assert_eq!(parse("multipart/form-data; boundary=B", &body), None);
        assert_eq!(parse("text/plain", &body), None);
    }
}
