import { serializeError } from '../../core/errors.ts';
import { createMcpServer } from '../../mcp/server.ts';
import type { Model } from '../../runtime/model.ts';
import { createOwnTools, OWN_INSTRUCTIONS } from '../../runtime/tools/own-tools.ts';
import type { CommandRunner, HelpParts } from '../command.ts';
import { defineFlags, type Flag } from '../flags.ts';
import { loadWithProgress } from '../load-model.ts';
import { checkServerFlags, CLIENT_FLAGS, openClient } from '../memory/client.ts';
import { EMBEDDER_FLAG, PROJECTION_FLAG } from '../memory/embedder-flag.ts';
import { bridgeToServer } from '../mcp/bridge-to-server.ts';
import { serveLines } from '../mcp/serve-lines.ts';
import { readServer } from '../servers/ask-server.ts';

export const flags: readonly Flag[] = [
  ...CLIENT_FLAGS,
  ...defineFlags({
    '--generate <model>': 'model of the tool generate; loaded by its first call (without --url)',
    '--read-only': 'offer only tools that read (without --url)',
  }),
];

export const help: HelpParts = {
  notes:
    'Speaks MCP on stdin and stdout; other programs start it as a command. Tools: memory_search, memory_add, memory_list, memory_get, memory_remove, audit_search, audit_verify and generate; with --url also route_explain, and only those that the API key allows.',
};

/** An MCP server for other agents, on the standard streams. */
export const run: CommandRunner = async (context) => {
  const local = [
    '--memory',
    '--model',
    EMBEDDER_FLAG.name,
    PROJECTION_FLAG.name,
    '--tenant',
    '--generate',
    '--read-only',
  ];
  if (checkServerFlags(context, local)) {
    return serveLines(context.io, bridgeToServer(readServer(context)));
  }
  const { values } = context;
  const client = await openClient(context, { needsModel: true, canOmitModel: true, canCreate: true });
  const reference = values['--generate'] as string | undefined;
  let loading: Promise<Model> | null = null;
  const load = (): Promise<Model> => (loading ??= loadWithProgress(context, reference!, {}, {}));
  const tools = createOwnTools({
    canWrite: values['--read-only'] !== true,
    call: (name, input) => client.call<object>(name, input),
    explain: null,
    generate:
      reference === undefined
        ? null
        : async ({ prompt, system, maxTokens, temperature }, signal) => {
            const turns = [{ role: 'user' as const, content: prompt }];
            const messages = system === undefined ? turns : [{ role: 'system' as const, content: system }, ...turns];
            const options = {
              maxTokens,
              clampMaxTokens: true,
              signal,
              ...(temperature === undefined ? {} : { temperature }),
            };
            return (await (await load()).generate(messages, options)).text;
          },
  });
  try {
    await serveLines(
      context.io,
      createMcpServer(tools, {
        version: context.version,
        instructions: OWN_INSTRUCTIONS,
        report: (error) => context.output.note((error as Error | null)?.stack ?? serializeError(error).message),
      }),
    );
  } finally {
    await (loading as Promise<Model> | null)?.then((model) => model.dispose()).catch(() => {});
    await client.close();
  }
};
