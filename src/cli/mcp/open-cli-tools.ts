import { systemClock } from '../../core/clock.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { RunnableTool } from '../../runtime/tools/runnable-tool.ts';
import type { ToolCallRequest, ToolEvent } from '../../runtime/tools/tool-loop.ts';
import type { CommandContext } from '../command.ts';
import type { Output } from '../output.ts';
import { configuredServers } from './configured-servers.ts';

/** Asks a person; resolves to the line typed, or to null if no one can be asked. */
export type AskPerson = (question: string) => Promise<string | null>;

/** Tools of a conversation at the command line. */
export interface CliTools {
  readonly tools: readonly RunnableTool[];
  approve(request: ToolCallRequest): Promise<boolean>;
  onEvent(event: ToolEvent): void;
  /** Set by the terminal that can ask; null: calls that need consent are refused. */
  ask: AskPerson | null;
  close(): Promise<void>;
}

const MAX_SHOWN = 500;

/** Starts the servers of `--mcp`; null without the flag. */
export async function openCliTools({ io, output, values, config, version }: CommandContext): Promise<CliTools | null> {
  const configs = configuredServers({ values, config });
  if (configs.length === 0) return null;
  const { createMcpServerPool } = await import('../../mcp/server-pool.ts');
  const { connectMcp } = await import('../../node/mcp/connect-mcp.ts');
  const { createMcpServers } = await import('../../runtime/tools/mcp-servers.ts');
  const servers = createMcpServers(createMcpServerPool(configs, { connect: connectMcp, clock: systemClock, version }));
  try {
    const tools = await servers.tools(undefined, { signal: io.signal });
    for (const { server, name, reason } of servers.unusable) {
      output.note(`MCP server ${server}: tool ${JSON.stringify(name)} is not offered: ${reason}`);
    }
    output.note(`tools: ${tools.map(({ definition }) => definition.function.name).join(', ') || 'none'}`);
    return { tools, ...createConsent(output), close: () => servers.close() };
  } catch (error) {
    await servers.close();
    const stderr = error instanceof RuvLLMError ? error.data['stderr'] : undefined;
    if (typeof stderr === 'string') output.note(`its error output ends with: ${stderr}`);
    throw error;
  }
}

/** Shows calls and asks for consent; "always" holds until the command ends. */
export function createConsent(output: Pick<Output, 'note'>): Pick<CliTools, 'approve' | 'onEvent' | 'ask'> {
  const allowed = new Set<string>();
  const nameOf = ({ origin, call }: ToolCallRequest): string => (origin === null ? call.name : `${origin.server}/${origin.tool}`); // prettier-ignore
  return {
    ask: null,
    async approve(request) {
      const name = nameOf(request);
      if (allowed.has(name)) return true;
      if (this.ask === null) {
        output.note(`refused ${name}: its consent is "ask", and there is no terminal to ask; set it to "allow"`);
        return false;
      }
      const question = `Allow ${name} ${shorten(JSON.stringify(request.arguments))}? [y]es, [n]o, [a]lways: `;
      const answer = (await this.ask(question))?.trim().toLowerCase() ?? '';
      if (answer === 'a' || answer === 'always') allowed.add(name);
      return ['y', 'yes', 'a', 'always'].includes(answer);
    },
    onEvent(event) {
      if (event.type === 'call') output.note(`calls ${nameOf(event.request)} ${shorten(JSON.stringify(event.request.arguments))}`); // prettier-ignore
      if (event.type !== 'result') return;
      const { output: result, durationMs } = event.finished;
      output.note(
        `${nameOf(event.finished)}: ${result.outcome}, ${result.numBytes} bytes in ${durationMs.toFixed(0)} ms`,
      );
    },
  };
}

const shorten = (text: string): string => (text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text);
