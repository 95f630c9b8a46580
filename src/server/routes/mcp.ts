import { serializeError } from '../../core/errors.ts';
import type { ChatMessage } from '../../runtime/lower-layers.ts';
import { createMcpServer, PROTOCOL_VERSIONS, RPC_CODES } from '../../runtime/mcp.ts';
import { operationOf } from '../../runtime/memory-operations.ts';
import { PLAIN_REQUEST } from '../../runtime/requests/generation-request.ts';
import {
  createOwnTools,
  type GenerateToolInput,
  OWN_INSTRUCTIONS,
  type OwnToolsTarget,
} from '../../runtime/tools/own-tools.ts';
import { refusal } from '../errors.ts';
import { allowedBy } from '../guard.ts';
import { withModel } from '../resolve-model.ts';
import { type Exchange, json, type RouteCodes } from '../route.ts';
import { explainRoute } from './model-decision.ts';

/** The parts that the caller's key allows, of the caller's tenant only. */
function targetOf(exchange: Exchange): OwnToolsTarget {
  const { services, caller } = exchange;
  const { memory, routing, models } = services;
  return {
    canWrite: allowedBy(caller.scopes).inference,
    call: memory === null ? null : (name, input) => operationOf(name).run(memory, caller.tenant, input),
    explain: routing === null ? null : (prompt) => explainRoute(exchange, prompt, {}),
    generate: models.list().length === 0 ? null : (input, signal) => generate(exchange, input, signal),
  };
}

async function generate(exchange: Exchange, input: GenerateToolInput, signal: AbortSignal): Promise<string> {
  const { services, caller } = exchange;
  const { prompt, system, maxTokens, temperature, model = services.models.list()[0]!.id } = input;
  const messages: ChatMessage[] = [{ role: 'user', content: prompt }];
  if (system !== undefined) messages.unshift({ role: 'system', content: system });
  const options = { maxTokens, clampMaxTokens: true, ...(temperature === undefined ? {} : { temperature }) };
  const request = await withModel({ ...PLAIN_REQUEST, model, prompts: [messages], options }, exchange);
  const running = await services.pipeline.start(request, { ...caller, signal });
  let text = '';
  try {
    for await (const chunk of running.events) text += chunk.text;
  } finally {
    running.abort(); // no effect after the last event
  }
  return text;
}

/** `POST /mcp`: an MCP server over streamable HTTP without sessions. */
export const routes = {
  'POST /mcp': {
    summary: "MCP server with this server's memory, audit log, router and models as tools.",
    body: {
      type: 'object',
      properties: {
        jsonrpc: { const: '2.0' },
        id: { type: ['string', 'integer'] },
        method: { type: 'string' },
        params: { type: 'object' },
      },
      required: ['jsonrpc', 'method'],
    },
    async handle(exchange) {
      const { services, caller, request } = exchange;
      const version = request.headers.get('mcp-protocol-version');
      if (version !== null && !(PROTOCOL_VERSIONS as readonly string[]).includes(version)) {
        const message = `the protocol version ${JSON.stringify(version.slice(0, 40))} is not supported; known are ${PROTOCOL_VERSIONS.join(', ')}`;
        throw refusal(400, 'unsupported', message);
      }
      const server = createMcpServer(createOwnTools(targetOf(exchange)), {
        version: services.version,
        instructions: OWN_INSTRUCTIONS,
        report: (error) =>
          services.logger.log('error', 'mcp', {
            requestId: caller.requestId,
            reason: (error as Error | null)?.stack ?? serializeError(error).message,
          }),
      });
      const reply = await server.handle(await exchange.readBody(), caller.signal);
      if (reply === null) return new Response(null, { status: 202 });
      const isInvalid = 'error' in reply && reply.error.code === RPC_CODES.invalidRequest;
      return json(reply, isInvalid ? 400 : 200);
    },
  },
} satisfies RouteCodes;
