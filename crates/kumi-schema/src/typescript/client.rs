//! The client: an interface for whatever carries messages, a class per channel, and one that opens them all.

use super::{Writer, text};
use crate::hash::channel_hash;
use crate::model::{Channel, Event, Protocol, Request, Side};
use crate::names::{camel_case, pascal_case, shouting_case, type_identifier};

/// How many events a stream holds for a consumer that does not come.
const MAX_WAITING_EVENTS: usize = 256;

pub(super) fn write(out: &mut Writer, protocol: &Protocol) {
    let own = pascal_case(&protocol.name);
    write_interfaces(out, &own);
    if protocol
        .channels
        .iter()
        .any(|channel| channel.events_from(Side::Server).next().is_some())
    {
        write_event_stream(out, &own);
    }
    for channel in &protocol.channels {
        write_channel(out, protocol, channel, &own);
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
    out.line("private constructor(");
    for (index, channel) in protocol.channels.iter().enumerate() {
        let own = pascal_case(&channel.name);
        out.line(&format!("channel{index}: {own}Channel,"));
    }
    out.line(") {");
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
    out.line(&format!("return new {own}Client("));
    for (index, channel) in protocol.channels.iter().enumerate() {
        let own = pascal_case(&channel.name);
        out.line(&format!("new {own}Channel(channel{index}),"));
    }
    out.line(");");
    out.line("} catch (error) {");
    out.line("await Promise.allSettled(opened.map((channel) => channel.close()));");
    out.line("throw error;");
    out.line("}");
    out.line("}");
    out.line("}");
}

fn write_interfaces(out: &mut Writer, own: &str) {
    out.blank();
    out.doc(Some("What a channel is, for the code that opens it."));
    out.line(&format!("export interface {own}ChannelSpec {{"));
    out.line("readonly name: string;");
    out.line("readonly version: string;");
    out.line("readonly schemaHash: string;");
    out.line("readonly lifetime: \"transient\" | \"persistent\";");
    out.line("readonly delivery: \"reliable\" | \"unreliable\";");
    out.line("}");
    out.blank();
    out.doc(Some(
        "What a transport needs to know of an `AbortSignal`, which is one of these. Named here so that the module \
         compiles where the language is all there is.",
    ));
    out.line(&format!("export interface {own}Signal {{"));
    out.line("readonly aborted: boolean;");
    out.line("readonly reason?: unknown;");
    out.line("addEventListener(type: \"abort\", listener: () => void): void;");
    out.line("removeEventListener(type: \"abort\", listener: () => void): void;");
    out.line("}");
    out.blank();
    out.doc(Some("What a caller may ask of one call."));
    out.line(&format!("export interface {own}CallOptions {{"));
    out.doc(Some("How long the answer may take, in milliseconds."));
    out.line("readonly deadlineMs?: number;");
    out.doc(Some("Ends the call early."));
    out.line(&format!("readonly signal?: {own}Signal;"));
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
        "Receives events of one name until the returned function is called.",
    ));
    out.line("onEvent(method: string, listener: (payload: unknown) => void): () => void;");
    out.doc(Some(
        "Answers requests of one name until the returned function is called.",
    ));
    out.line(
        "onRequest(method: string, handler: (payload: unknown) => Promise<unknown>): () => void;",
    );
    out.doc(Some(
        "Calls back once the channel has ended and is not opened again, at once if it has already: without a reason if one side \
         closed it, with one if it was lost. A channel that is opened again has not ended. Not called any more after \
         the returned function was.",
    ));
    out.line("onClose(listener: (reason?: unknown) => void): () => void;");
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

fn write_channel(out: &mut Writer, protocol: &Protocol, channel: &Channel, own: &str) {
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
            write_request(out, request, own);
        }
        if channel.from.is_server() {
            write_handler(out, request);
        }
    }
    for event in channel.events_from(Side::Client) {
        write_send(out, event);
    }
    for event in channel.events_from(Side::Server) {
        write_listen(out, event, own);
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

fn write_request(out: &mut Writer, request: &Request, own: &str) {
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
    out.line(&format!("check{message}(request);"));
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

fn write_handler(out: &mut Writer, request: &Request) {
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
    out.line(&format!("check{message}(payload);"));
    if request.returns.is_some() {
        out.line("const answer = await handler(payload);");
        out.line(&format!("check{answer}(answer);"));
        out.line("return answer;");
    } else {
        out.line("return handler(payload);");
    }
    out.line("});");
    out.line("}");
}

fn write_send(out: &mut Writer, event: &Event) {
    let message = type_identifier(&event.message);
    out.blank();
    let described = format!("Sends {}.", event.name);
    out.doc(event.description.as_deref().or(Some(&described)));
    out.line(&format!(
        "async send{}(event: {message}): Promise<void> {{",
        pascal_case(&event.name)
    ));
    out.line(&format!("check{message}(event);"));
    out.line(&format!(
        "await this.transport.sendEvent({}, event);",
        text(&event.name)
    ));
    out.line("}");
}

fn write_listen(out: &mut Writer, event: &Event, own: &str) {
    let message = type_identifier(&event.message);
    let name = pascal_case(&event.name);
    out.blank();
    let described = format!(
        "Receives {} until the returned function is called.",
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
        "{} as a stream, from now on: nothing is missed between this call and the first `next`.",
        event.name
    )));
    out.line(&format!(
        "{}Events(): {own}EventStream<{message}> {{",
        camel_case(&event.name)
    ));
    out.line(&format!(
        "return new {own}EventStream(this.transport, {});",
        text(&event.name)
    ));
    out.line("}");
}

/// One class for all streams. It receives from its first moment, and a waiting `next` is answered in the end.
fn write_event_stream(out: &mut Writer, own: &str) {
    out.blank();
    out.doc(Some(&format!(
        "Events of one name, for `for await`. It ends when the channel is closed and fails when the channel is lost, \
         after the events that came before. It also fails when {MAX_WAITING_EVENTS} events wait for a consumer that \
         does not come. A reader that leaves early calls `return`, as `for await` does."
    )));
    let result = "IteratorResult<T, undefined>";
    out.line(&format!(
        "export class {own}EventStream<T> implements AsyncIterableIterator<T> {{"
    ));
    out.line("private readonly waiting: T[] = [];");
    out.line("private readonly readers: {");
    out.line(&format!("readonly resolve: (result: {result}) => void;"));
    out.line("readonly reject: (reason: unknown) => void;");
    out.line("}[] = [];");
    out.line("private readonly leaving: (() => void)[] = [];");
    out.line("private ended = false;");
    out.line("private failure: { readonly reason: unknown } | undefined;");
    out.blank();
    out.line(&format!(
        "constructor(transport: {own}ChannelTransport, method: string) {{"
    ));
    out.line("this.leaving.push(");
    out.line("transport.onEvent(method, (payload) => this.take(method, payload as T)),");
    out.line(
        "transport.onClose((reason) => this.end(reason === undefined ? undefined : { reason })),",
    );
    out.line(");");
    out.line("if (this.ended) {");
    out.line("this.leave();");
    out.line("}");
    out.line("}");
    out.blank();
    out.doc(Some("The next event, however long it takes."));
    out.line(&format!("next(): Promise<{result}> {{"));
    out.line("if (this.waiting.length > 0) {");
    out.line("return Promise.resolve({ done: false, value: this.waiting.shift() as T });");
    out.line("}");
    out.line("if (this.failure !== undefined) {");
    out.line("const { reason } = this.failure;");
    out.line("this.failure = undefined;");
    out.line("return Promise.reject(reason);");
    out.line("}");
    out.line("if (this.ended) {");
    out.line("return Promise.resolve({ done: true, value: undefined });");
    out.line("}");
    out.line("return new Promise((resolve, reject) => {");
    out.line("this.readers.push({ resolve, reject });");
    out.line("});");
    out.line("}");
    out.blank();
    out.doc(Some(
        "Ends the stream. A waiting `next` learns that there is no event.",
    ));
    out.line(&format!("return(): Promise<{result}> {{"));
    out.line("this.waiting.length = 0;");
    out.line("this.failure = undefined;");
    out.line("this.end(undefined);");
    out.line("return Promise.resolve({ done: true, value: undefined });");
    out.line("}");
    out.blank();
    out.line("[Symbol.asyncIterator](): this {");
    out.line("return this;");
    out.line("}");
    out.blank();
    out.line("private take(method: string, event: T): void {");
    out.line("if (this.ended) {");
    out.line("return;");
    out.line("}");
    out.line("const reader = this.readers.shift();");
    out.line("if (reader !== undefined) {");
    out.line("reader.resolve({ done: false, value: event });");
    out.line(&format!(
        "}} else if (this.waiting.length < {MAX_WAITING_EVENTS}) {{"
    ));
    out.line("this.waiting.push(event);");
    out.line("} else {");
    out.line("this.end({ reason: new Error(`too many ${method} events are waiting`) });");
    out.line("}");
    out.line("}");
    out.blank();
    out.line("private end(failure: { readonly reason: unknown } | undefined): void {");
    out.line("if (this.ended) {");
    out.line("return;");
    out.line("}");
    out.line("this.ended = true;");
    out.line("this.leave();");
    out.line("const first = this.readers.shift();");
    out.line("if (failure === undefined) {");
    out.line("first?.resolve({ done: true, value: undefined });");
    out.line("} else if (first !== undefined) {");
    out.line("first.reject(failure.reason);");
    out.line("} else {");
    out.line("this.failure = failure;");
    out.line("}");
    out.line("for (const reader of this.readers.splice(0)) {");
    out.line("reader.resolve({ done: true, value: undefined });");
    out.line("}");
    out.line("}");
    out.blank();
    out.line("private leave(): void {");
    out.line("for (const leave of this.leaving.splice(0)) {");
    out.line("leave();");
    out.line("}");
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
