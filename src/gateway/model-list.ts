import type { Clock } from '../core/clock.ts';
import { RuvLLMError } from '../core/errors.ts';
import { attempt } from './attempt.ts';
import { requestHeaders } from './forward-headers.ts';
import type { GatewayNode } from './node-table.ts';
import type { GatewayRequest, GatewayResponse, Upstream } from './types.ts';

/** A list is in the memory of a node. */
const LIMIT_MS = 5000;

interface ModelPage {
  readonly data: readonly { readonly id: string }[];
}

/** The models of all nodes together, in the format that the client asked for. A model that several nodes serve is listed once. */
export async function listModels(
  { nodes, upstream, clock }: { nodes: readonly GatewayNode[]; upstream: Upstream; clock: Clock },
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
    up.map(async (node) => {
      try {
        const answer = await attempt(upstream, node, asked, { clock, headMs: LIMIT_MS, answerMs: LIMIT_MS });
        if (answer.rest !== null) await answer.rest.return?.();
        answer.end();
        return answer;
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
