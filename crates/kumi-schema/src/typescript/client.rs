//! The client: a class per channel, and one that opens them all.

use super::{Writer, text};
use crate::hash::channel_hash;
use crate::model::{Channel, Event, Protocol, Request, Side};
use crate::names::{camel_case, pascal_case, shouting_case, type_identifier};

pub(super) fn write(out: &mut Writer, protocol: &Protocol) {
    let own = pascal_case(&protocol.name);
    for channel in &protocol.channels {
        write_channel(out, protocol, channel);
    }
    out.blank();
    out.doc(
        protocol
            .description
            .as_deref()
            .or(Some("All channels of the protocol.")),
    );
    out.line(&format!("export class {own}Client {{"));
    for channel in &protocol.channels {
        out.doc(channel.description.as_deref());
        out.line(&format!(
            "readonly {}: {}Channel;",
            member_name(&channel.name),
            pascal_case(&channel.name)
        ));
    }
    out.blank();
    out.line(
        "private constructor(opened: (spec: unison.ChannelSpec) => unison.ChannelTransport) {",
    );
    let mut specs = Vec::new();
    for channel in &protocol.channels {
        let spec = format!("{}_CHANNEL", shouting_case(&channel.name));
        out.line(&format!(
            "this.{} = new {}Channel(opened({spec}));",
            member_name(&channel.name),
            pascal_case(&channel.name)
        ));
        specs.push(spec);
    }
    out.line("}");
    out.blank();
    out.doc(Some(
        "Opens every channel. Rejects, and leaves none open, if one of them is refused.",
    ));
    out.line(&format!(
        "static async connect(transport: unison.Transport): Promise<{own}Client> {{"
    ));
    let open = "const opened = await unison.openAll(transport, [";
    out.lines.list(open, &specs, "]);", super::WIDTH);
    out.line(&format!("return new {own}Client(opened);"));
    out.line("}");
    out.line("}");
}

fn write_channel(out: &mut Writer, protocol: &Protocol, channel: &Channel) {
    let name = pascal_case(&channel.name);
    out.blank();
    out.line(&format!(
        "export const {}_CHANNEL: unison.ChannelSpec = {{",
        shouting_case(&channel.name)
    ));
    out.line(&format!("name: {},", text(&channel.name)));
    out.line(&format!(
        "version: {}_VERSION,",
        shouting_case(&protocol.name)
    ));
    out.line(&format!(
        "schemaHash: {},",
        text(&channel_hash(protocol, channel).to_string())
    ));
    out.line(&format!("lifetime: {},", text(channel.lifetime.as_str())));
    out.line(&format!("delivery: {},", text(channel.delivery.as_str())));
    out.line("};");
    out.blank();
    let described = format!("Channel {}.", channel.name);
    out.doc(channel.description.as_deref().or(Some(&described)));
    out.line(&format!(
        "export class {name}Channel extends unison.Channel {{"
    ));
    for request in &channel.requests {
        if channel.from.is_client() {
            write_request(out, request);
        }
        if channel.from.is_server() {
            write_handler(out, request);
        }
    }
    for event in channel.events_from(Side::Client) {
        write_send(out, event);
    }
    for event in channel.events_from(Side::Server) {
        write_listen(out, event);
    }
    out.line("}");
}

/// Another member of a class, with a line between it and what is before it.
fn write_method(out: &mut Writer, doc: Option<&str>, signature: &str, body: &str) {
    if !out.lines.text.ends_with("{\n") {
        out.blank();
    }
    out.doc(doc);
    out.line(&format!("{signature} {{"));
    out.line(&format!("return {body};"));
    out.line("}");
}

fn answer(request: &Request) -> String {
    request
        .returns
        .as_deref()
        .map_or("void".into(), type_identifier)
}

fn write_request(out: &mut Writer, request: &Request) {
    let message = type_identifier(&request.message);
    let mut lines: Vec<String> = request.description.iter().cloned().collect();
    if request.idempotent {
        lines.push(
            "Idempotent: it may be sent again when the connection breaks before the response."
                .into(),
        );
    }
    write_method(
        out,
        Some(&lines.join("\n")),
        &format!(
            "{}(request: {message}, options?: unison.CallOptions): Promise<{}>",
            member_name(&request.name),
            answer(request)
        ),
        &format!(
            "unison.call(this, {}, check{message}, request, options, {})",
            text(&request.name),
            request.idempotent
        ),
    );
}

fn write_handler(out: &mut Writer, request: &Request) {
    let message = type_identifier(&request.message);
    let answer = answer(request);
    let check = match &request.returns {
        Some(_) => format!(", check{answer}"),
        None => String::new(),
    };
    write_method(
        out,
        Some(&format!(
            "Responds to the server's {}, until the returned function is called.",
            request.name
        )),
        &format!(
            "onAsked{}(handler: (request: {message}) => Promise<{answer}>): () => void",
            pascal_case(&request.name)
        ),
        &format!(
            "unison.respond(this, {}, check{message}, handler{check})",
            text(&request.name)
        ),
    );
}

fn write_send(out: &mut Writer, event: &Event) {
    let message = type_identifier(&event.message);
    write_method(
        out,
        event.description.as_deref(),
        &format!(
            "send{}(event: {message}): Promise<void>",
            pascal_case(&event.name)
        ),
        &format!(
            "unison.emit(this, {}, check{message}, event)",
            text(&event.name)
        ),
    );
}

fn write_listen(out: &mut Writer, event: &Event) {
    let message = type_identifier(&event.message);
    let name = text(&event.name);
    let described = format!(
        "Receives {} until the returned function is called.",
        event.name
    );
    write_method(
        out,
        event.description.as_deref().or(Some(&described)),
        &format!(
            "on{}(listener: (event: {message}) => void): () => void",
            pascal_case(&event.name)
        ),
        &format!("unison.listen(this, {name}, listener)"),
    );
    write_method(
        out,
        Some(&format!(
            "{} as a stream, from now on: nothing is missed between this call and the first `next`.",
            event.name
        )),
        &format!(
            "{}Events(): unison.EventStream<{message}>",
            camel_case(&event.name)
        ),
        &format!("new unison.EventStream(this, {name})"),
    );
}

/// A member of a class. Its own two names keep their meaning.
fn member_name(name: &str) -> String {
    let camel = camel_case(name);
    match &*camel {
        "close" | "transport" | "constructor" | "connect" => format!("{camel}_"),
        _ => camel,
    }
}
