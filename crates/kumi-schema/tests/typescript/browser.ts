// What a browser or node has fits what the generated module asks for.
import { type EverythingCallOptions, type EverythingChannelTransport } from "./everything.js";

export const options: EverythingCallOptions = { signal: AbortSignal.timeout(1000) };

export async function fetched(channel: EverythingChannelTransport, controller: AbortController): Promise<unknown> {
  return channel.request("Ping", {}, { signal: controller.signal, idempotent: false });
}
