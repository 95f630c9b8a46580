import { expect, test } from 'vitest';
import { createSpokenModel } from '../../../test/support/spoken-model.ts';
import { openTestMemory } from '../../../test/support/test-memory.ts';
import { createRequestMemory } from '../memory/request-memory.ts';
import type { FunctionTool } from './runnable-tool.ts';
import type { ToolCallReport } from './run-tools.ts';

const HOUR = 3_600_000;
const call = (args: object): string =>
  `<tool_call>\n${JSON.stringify({ name: 'weather', arguments: args })}\n</tool_call>`;

/** Runs the conversation once per user with a tool that counts its calls. */
async function converse(
  tool: Partial<FunctionTool>,
  rounds: readonly { readonly args: object; readonly user?: string }[],
): Promise<{ reports: readonly ToolCallReport[]; numCalls: number }> {
  const memory = await openTestMemory();
  const requests = createRequestMemory(memory, { now: () => 0, wallClock: Date.now, report() {} });
  let numCalls = 0;
  const weather: FunctionTool = {
    type: 'function',
    function: { name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
    call: () => `${++numCalls} degrees`,
    ...tool,
  };
  const reports: ToolCallReport[] = [];
  for (const { args, user } of rounds) {
    const { model } = createSpokenModel([call(args), 'Warm.'], { memory: requests });
    const messages = [{ role: 'user' as const, content: 'How warm is it?' }];
    const { calls } = await model.runTools({
      messages,
      tools: [weather],
      maxTokens: 500,
      ...(user === undefined ? {} : { user }),
    });
    reports.push(...calls);
  }
  await requests.close();
  await memory.close();
  return { reports, numCalls };
}

const rome = { args: { city: 'Rome' } };

test('a result of a tool that only reads is used again, with its age in the report', async () => {
  const { reports, numCalls } = await converse({ isReadOnly: true, maxAgeMs: HOUR }, [rome, rome]);
  expect(numCalls).toBe(1);
  expect(reports.map(({ result }) => result)).toEqual(['1 degrees', '1 degrees']);
  expect(reports[0]).not.toHaveProperty('ageMs');
  expect(reports[1]!.ageMs).toBeLessThan(HOUR);
});

test.each([
  ['other arguments', { isReadOnly: true, maxAgeMs: HOUR }, [rome, { args: { city: 'Oslo' } }]],
  ['another user', { isReadOnly: true, maxAgeMs: HOUR }, [rome, { ...rome, user: 'ann' }]],
  ['no age', { isReadOnly: true }, [rome, rome]],
  ['side effects', {}, [rome, rome]],
] as const)('the tool is called again with %s', async (_, tool, rounds) => {
  expect((await converse(tool, rounds)).numCalls).toBe(2);
});

test('a failed call is not stored', async () => {
  let numFailed = 0;
  const fails = {
    isReadOnly: true,
    maxAgeMs: HOUR,
    call() {
      numFailed++;
      throw new Error('no connection');
    },
  };
  const { reports } = await converse(fails, [rome, rome]);
  expect(numFailed).toBe(2);
  expect(reports.map(({ outcome }) => outcome)).toEqual(['failed', 'failed']);
});

test('an age for a tool with side effects is refused', async () => {
  await expect(converse({ maxAgeMs: HOUR }, [rome])).rejects.toMatchObject({
    code: 'invalid_option',
    data: { tool: 'weather', maxAgeMs: HOUR },
  });
});
