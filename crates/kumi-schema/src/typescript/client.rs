//! The client: an interface for whatever carries messages, a class per channel, and one that opens them all.

use super::checks::checked;
use super::{Writer, text};
use crate::hash::channel_hash;
use crate::model::{Channel, Event, Protocol, Request, Side};
use crate::names::{camel_case, pascal_case, shouting_case, type_identifier};
use std::collections::BTreeSet;

/// How many events a stream holds for a consumer that does not come.
const MAX_WAITING_EVENTS: usize = 256;

pub(super) fn write(out: &mut Writer, protocol: &Protocol) {
    let own = pascal_case(&protocol.name);
    write_interfaces(out, &own);
    let checked = checked(protocol);
    for channel in &protocol.channels {
        write_channel(out, protocol, channel, &own, &checked);
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
    // Local names are counted, because a channel may be called like a word of the language.
    let parameters: Vec<String> = protocol
        .channels
        .iter()
        .enumerate()
        .map(|(index, channel)| format!("channel{index}: {}Channel", pascal_case(&channel.name)))
        .collect();
    out.line(&format!(
        "private constructor({}) {{",
        parameters.join(", ")
    ));
    for (index, channel) in protocol.channels.iter().enumerate() {
        let name = member_name(&channel.name);
        out.line(&format!("this.{name} = channel{index};"));
    }
    out.line("}");
    out.blank();
    out.doc(Some(
        "Opens every channel. Rejects, and leaves none open, if one of them is refused.",
    ));
    out.line(&format!(
        "static async connect(transport: {own}Transport): Promise<{own}Client> {{"
    ));
    out.line(&format!("const opened: {own}ChannelTransport[] = [];"));
    out.line("try {");
    for (index, channel) in protocol.channels.iter().enumerate() {
        let spec = format!("{}_CHANNEL", shouting_case(&channel.name));
        out.line(&format!(
            "const channel{index} = await transport.open({spec});"
        ));
        out.line(&format!("opened.push(channel{index});"));
    }
    let arguments: Vec<String> = protocol
        .channels
        .iter()
        .enumerate()
        .map(|(index, channel)| {
            let own = pascal_case(&channel.name);
            format!("new {own}Channel(channel{index})")
        })
        .collect();
    out.line(&format!(
        "return new {own}Client({});",
        arguments.join(", ")
    ));
    out.line("} catch (error) {");
    out.line("await Promise.allSettled(opened.map((channel) => channel.close()));");
    out.line("throw error;");
    out.line("}");
    out.line("}");
    out.line("}");
}

fn write_interfaces(out: &mut Writer, own: &str) {
    out.blank();
    out.doc(Some("What a channel is, for whoever opens it."));
    out.line(&format!("export interface {own}ChannelSpec {{"));
    out.line("readonly name: string;");
    out.line("readonly version: string;");
    out.line("readonly schemaHash: string;");
    out.line("readonly lifetime: \"transient\" | \"persistent\";");
    out.line("readonly delivery: \"reliable\" | \"unreliable\";");
    out.line("}");
    out.blank();
    out.doc(Some("What a caller may ask of one call."));
    out.line(&format!("export interface {own}CallOptions {{"));
    out.doc(Some("How long the answer may take, in milliseconds."));
    out.line("readonly deadlineMs?: number;");
    out.doc(Some("Ends the call early."));
    out.line("readonly signal?: AbortSignal;");
    out.line("}");
    out.blank();
    out.doc(Some("An open channel. Payloads are JSON values."));
    out.line(&format!("export interface {own}ChannelTransport {{"));
    out.doc(Some(
        "Asks, and resolves to the answer. An idempotent request may be sent again.",
    ));
    out.line(&format!(
        "request(method: string, payload: unknown, options: {own}CallOptions & {{ readonly idempotent: boolean }}): Promise<unknown>;"
    ));
    out.doc(Some(
        "Sends an event, and resolves when it may be forgotten here.",
    ));
    out.line("sendEvent(method: string, payload: unknown): Promise<void>;");
    out.doc(Some(
        "Hears events of one name until the returned function is called.",
    ));
    out.line("onEvent(method: string, listener: (payload: unknown) => void): () => void;");
    out.doc(Some(
        "Answers requests of one name until the returned function is called.",
    ));
    out.line(
        "onRequest(method: string, handler: (payload: unknown) => Promise<unknown>): () => void;",
    );
    out.doc(Some("Ends the channel."));
    out.line("close(): Promise<void>;");
    out.line("}");
    out.blank();
    out.doc(Some("Opens channels."));
    out.line(&format!("export interface {own}Transport {{"));
    out.line(&format!(
        "open(channel: {own}ChannelSpec): Promise<{own}ChannelTransport>;"
    ));
    out.line("}");
}

fn write_channel(
    out: &mut Writer,
    protocol: &Protocol,
    channel: &Channel,
    own: &str,
    checked: &BTreeSet<&str>,
) {
    let name = pascal_case(&channel.name);
    out.blank();
    out.doc(Some(&format!("What channel {} is.", channel.name)));
    out.line(&format!(
        "export const {}_CHANNEL: {own}ChannelSpec = {{",
        shouting_case(&channel.name)
    ));
    out.line(&format!("name: {},", text(&channel.name)));
    out.line(&format!(
        "version: {},",
        text(&protocol.version.to_string())
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
    out.line(&format!("export class {name}Channel {{"));
    out.doc(Some("What carries its messages."));
    out.line(&format!("readonly transport: {own}ChannelTransport;"));
    out.blank();
    out.line(&format!("constructor(transport: {own}ChannelTransport) {{"));
    out.line("this.transport = transport;");
    out.line("}");
    for request in &channel.requests {
        if channel.from.is_client() {
            write_request(out, request, own, checked);
        }
        if channel.from.is_server() {
            write_handler(out, request, checked);
        }
    }
    for event in channel.events_from(Side::Client) {
        write_send(out, event, checked);
    }
    for event in channel.events_from(Side::Server) {
        write_listen(out, event);
    }
    out.blank();
    out.doc(Some("Ends the channel."));
    out.line("close(): Promise<void> {");
    out.line("return this.transport.close();");
    out.line("}");
    out.line("}");
}

fn answer(request: &Request) -> String {
    request
        .returns
        .as_deref()
        .map_or("void".into(), type_identifier)
}

fn write_request(out: &mut Writer, request: &Request, own: &str, checked: &BTreeSet<&str>) {
    let message = type_identifier(&request.message);
    let answer = answer(request);
    out.blank();
    let mut lines: Vec<String> = request.description.iter().cloned().collect();
    if request.idempotent {
        lines.push("Idempotent: it may be sent again when its answer got lost.".into());
    }
    out.doc(Some(&lines.join("\n")));
    out.line(&format!(
        "async {}(request: {message}, options: {own}CallOptions = {{}}): Promise<{answer}> {{",
        member_name(&request.name)
    ));
    if checked.contains(&*request.message) {
        out.line(&format!("check{message}(request);"));
    }
    let call = format!(
        "await this.transport.request({}, request, {{ ...options, idempotent: {} }})",
        text(&request.name),
        request.idempotent
    );
    if request.returns.is_some() {
        out.line(&format!("return ({call}) as {answer};"));
    } else {
        out.line(&format!("{call};"));
    }
    out.line("}");
}

fn write_handler(out: &mut Writer, request: &Request, checked: &BTreeSet<&str>) {
    let message = type_identifier(&request.message);
    let answer = answer(request);
    out.blank();
    out.doc(Some(&format!(
        "Answers the server's {}, until the returned function is called.",
        request.name
    )));
    out.line(&format!(
        "onAsked{}(handler: (request: {message}) => Promise<{answer}>): () => void {{",
        pascal_case(&request.name)
    ));
    out.line(&format!(
        "return this.transport.onRequest({}, async (payload) => {{",
        text(&request.name)
    ));
    out.line(&format!("const request = payload as {message};"));
    if checked.contains(&*request.message) {
        out.line(&format!("check{message}(request);"));
    }
    out.line("return handler(request);");
    out.line("});");
    out.line("}");
}

fn write_send(out: &mut Writer, event: &Event, checked: &BTreeSet<&str>) {
    let message = type_identifier(&event.message);
    out.blank();
    let described = format!("Sends {}.", event.name);
    out.doc(event.description.as_deref().or(Some(&described)));
    out.line(&format!(
        "async send{}(event: {message}): Promise<void> {{",
        pascal_case(&event.name)
    ));
    if checked.contains(&*event.message) {
        out.line(&format!("check{message}(event);"));
    }
    out.line(&format!(
        "await this.transport.sendEvent({}, event);",
        text(&event.name)
    ));
    out.line("}");
}

fn write_listen(out: &mut Writer, event: &Event) {
    let message = type_identifier(&event.message);
    let name = pascal_case(&event.name);
    out.blank();
    let described = format!(
        "Hears {} until the returned function is called.",
        event.name
    );
    out.doc(event.description.as_deref().or(Some(&described)));
    out.line(&format!(
        "on{name}(listener: (event: {message}) => void): () => void {{"
    ));
    out.line(&format!(
        "return this.transport.onEvent({}, (payload) => listener(payload as {message}));",
        text(&event.name)
    ));
    out.line("}");
    out.blank();
    out.doc(Some(&format!(
        "{} as a stream, from now on. It fails when {MAX_WAITING_EVENTS} events wait for a consumer that does not come.",
        event.name
    )));
    out.line(&format!(
        "async *{}Events(): AsyncGenerator<{message}, void, undefined> {{",
        camel_case(&event.name)
    ));
    out.line(&format!("const waiting: {message}[] = [];"));
    out.line("let overflowed = false;");
    out.line("let wake: () => void = () => undefined;");
    out.line(&format!("const stop = this.on{name}((event) => {{"));
    out.line(&format!("if (waiting.length >= {MAX_WAITING_EVENTS}) {{"));
    out.line("overflowed = true;");
    out.line("} else {");
    out.line("waiting.push(event);");
    out.line("}");
    out.line("wake();");
    out.line("});");
    out.line("try {");
    out.line("for (;;) {");
    out.line("const event = waiting.shift();");
    out.line("if (event !== undefined) {");
    out.line("yield event;");
    out.line("} else if (overflowed) {");
    out.line(&format!(
        "throw new Error({});",
        text(&format!("too many {} events are waiting", event.name))
    ));
    out.line("} else {");
    out.line("await new Promise<void>((resolve) => {");
    out.line("wake = resolve;");
    out.line("});");
    out.line("}");
    out.line("}");
    out.line("} finally {");
    out.line("stop();");
    out.line("}");
    out.line("}");
}

/// A member of a class. Its own two names keep their meaning.
fn member_name(name: &str) -> String {
    let camel = camel_case(name);
    match &*camel {
        "close" | "transport" | "constructor" | "connect" => format!("{camel}_"),
        _ => camel,
    }
}
