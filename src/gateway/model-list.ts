import { RuvLLMError } from '../core/errors.ts';
import { requestHeaders } from './forward-headers.ts';
import type { GatewayNode } from './node-table.ts';
import { readUpTo } from './read-body.ts';
import type { GatewayRequest, GatewayResponse, Upstream } from './types.ts';

const MAX_BYTES = 8 * 2 ** 20;

interface ModelPage {
  readonly data: readonly { readonly id: string }[];
}

/** The models of all nodes together, in the format that the client asked for. A model that several nodes serve is listed once. */
export async function listModels(
  nodes: readonly GatewayNode[],
  upstream: Upstream,
  request: GatewayRequest,
  via: string,
): Promise<GatewayResponse> {
  const asked = {
    method: 'GET',
    target: request.target,
    headers: { ...requestHeaders(request.headers), via },
    body: new Uint8Array(),
    signal: request.signal,
  };
  const up = nodes.filter(({ health }) => health === 'up');
  const answers = await Promise.all(
    up.map(async ({ url }) => {
      try {
        const { status, headers, body } = await upstream.send(url, asked);
        const { bytes, rest } = await readUpTo(body, MAX_BYTES);
        if (rest !== null) await rest.return?.();
        return { status, headers, bytes };
      } catch {
        return null; // its health is asked for anyway
      }
    }),
  );
  const answered = answers.filter((one) => one !== null);
  const pages = answered.filter(({ status }) => status === 200).flatMap(({ bytes }) => readPage(bytes));
  if (pages.length === 0) {
    const [refused] = answered;
    if (refused !== undefined)
      return { status: refused.status, headers: { 'content-type': 'application/json' }, body: refused.bytes };
    throw new RuvLLMError('overloaded', `none of ${nodes.length} nodes can list its models`, { isRetryable: true });
  }
  const models = new Map(pages.flatMap(({ data }) => data).map((model) => [model.id, model]));
  const body = new TextEncoder().encode(JSON.stringify({ ...pages[0], data: [...models.values()] }));
  return { status: 200, headers: { 'content-type': 'application/json' }, body };
}

function readPage(bytes: Uint8Array): ModelPage[] {
  try {
    const page = JSON.parse(new TextDecoder().decode(bytes)) as ModelPage;
    return Array.isArray(page.data) ? [page] : [];
  } catch {
    return [];
  }
}
