// The session of a coding agent, built by a script: a long system prompt with a changing billing line, tools, ten turns.
import type Anthropic from '@anthropic-ai/sdk';

const NUM_TURNS = 10;
const mark = { cache_control: { type: 'ephemeral' as const } };
const RULES = Array.from(
  { length: 40 },
  (_, index) => `${index + 1}. Before you change file ${index}, read it, and run the tests of folder ${index % 7}.`,
).join('\n');
const TOOLS: Anthropic.Tool[] = ['read_file', 'write_file', 'run_command'].map((name, index, { length }) => ({
  name,
  description: `${name.replace('_', ' ')}: works inside the project only.`,
  input_schema: {
    type: 'object',
    properties: { path: { type: 'string', description: 'relative to the project' }, content: { type: 'string' } },
    required: ['path'],
  },
  ...(index === length - 1 ? mark : {}),
}));

/** Turns as they were recorded: what the user asked, the call of the agent, its result, its answer. */
function turnsOf(index: number): Anthropic.MessageParam[] {
  const id = `toolu_${index}`;
  const path = `src/part-${index}.ts`;
  const result = `export const part${index} = ${index};\n`;
  return [
    { role: 'user', content: [{ type: 'text', text: `Please check part ${index}.` }] },
    { role: 'assistant', content: [{ type: 'tool_use', id, name: 'read_file', input: { path } }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: [{ type: 'text', text: result }] }] },
    { role: 'assistant', content: [{ type: 'text', text: `Part ${index} exports the number ${index}.` }] },
  ];
}

/** The requests of a session in order, each with all turns before it. Billing lines differ between requests and sessions. */
export function agentRequests(session: number, model: string): Anthropic.MessageCreateParamsNonStreaming[] {
  return Array.from({ length: NUM_TURNS }, (_, index) => {
    const turns = Array.from({ length: index + 1 }, (__, turn) => turnsOf(turn))
      .flat()
      .slice(0, -1);
    const blocks = turns.at(-1)!.content as Anthropic.ToolResultBlockParam[];
    const last = { role: 'user' as const, content: blocks.map((block) => ({ ...block, ...mark })) };
    return {
      model,
      max_tokens: 2,
      temperature: 0,
      system: [
        { type: 'text', text: `x-anthropic-billing-header: cc_version=2.1.${session}; cch=${session * 100 + index};` },
        { type: 'text', text: `You are a coding agent.\n${RULES}`, ...mark },
      ],
      tools: TOOLS,
      messages: [...turns.slice(0, -1), last],
    };
  });
}

/** Sends a session; the prompt tokens of each request, and those of them that were cached. */
export async function replaySession(
  client: Anthropic,
  requests: readonly Anthropic.MessageCreateParamsNonStreaming[],
): Promise<{ numTokens: number; numCached: number }[]> {
  const counts = [];
  for (const request of requests) {
    const { usage } = await client.messages.create(request);
    const numCached = usage.cache_read_input_tokens ?? 0;
    counts.push({ numTokens: usage.input_tokens + (usage.cache_creation_input_tokens ?? 0) + numCached, numCached });
  }
  return counts;
}

export function cachedShare(counts: readonly { numTokens: number; numCached: number }[]): number {
  const sum = (name: 'numTokens' | 'numCached'): number => counts.reduce((total, count) => total + count[name], 0);
  return sum('numCached') / sum('numTokens');
}
