// A client behind a load balancer: it knows both gateways, and tries the other one once if a connection ends before the first byte.
import { type Random } from '../../../src/core/random.ts';

export interface Reply {
  readonly status: number;
  readonly id: string | null;
  readonly text: string;
  /** Why the answer ended early, after its first byte; null: it is complete. */
  readonly broken: string | null;
  readonly isOtherGateway: boolean;
}

/** No gateway sent a byte. */
export class NoReply extends Error {}

/** A request that takes longer is a failure, not a reason to wait. */
const LIMIT_MS = 60_000;

export interface BalancedClient {
  ask(path: string, body?: object, method?: string): Promise<Reply>;
  /** Requests that were sent to the other gateway. */
  readonly numMoved: number;
}

export function createBalancedClient(gateways: readonly string[], random: Random): BalancedClient {
  let numMoved = 0;
  const send = (url: string, path: string, body: object | undefined, method: string): Promise<Response> =>
    fetch(url + path, {
      method,
      signal: AbortSignal.timeout(LIMIT_MS),
      ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    });

  async function read(response: Response, isOtherGateway: boolean): Promise<Reply> {
    const decoder = new TextDecoder();
    let text = '';
    let broken: string | null = null;
    try {
      for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) {
        text += decoder.decode(part, { stream: true });
      }
    } catch (error) {
      broken = String((error as { cause?: { code?: string } }).cause?.code ?? (error as Error).message);
    }
    return { status: response.status, id: /"id":\s*"([^"]+)"/.exec(text)?.[1] ?? null, text, broken, isOtherGateway };
  }

  return {
    async ask(path, body, method = body === undefined ? 'GET' : 'POST') {
      const first = Math.floor(random.next() * gateways.length);
      let response: Response;
      try {
        response = await send(gateways[first]!, path, body, method);
      } catch {
        numMoved++;
        try {
          response = await send(gateways[(first + 1) % gateways.length]!, path, body, method);
        } catch (error) {
          throw new NoReply(String((error as { cause?: unknown }).cause ?? error));
        }
        return read(response, true);
      }
      return read(response, false);
    },
    get numMoved() {
      return numMoved;
    },
  };
}
