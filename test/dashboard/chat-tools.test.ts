// Tool calls and reasoning in the chat.
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { canRun, type DashboardServer, drawnText, findViolations, openPage, sharedDashboardServer, streamOf } from './support/index.ts'; // prettier-ignore

let server: DashboardServer;
beforeAll(async () => {
  if (canRun) server = await sharedDashboardServer('bare');
});

const TOOLS = [
  { type: 'function', function: { name: 'weather', parameters: { type: 'object', properties: { city: {} } } } },
];
const send = async (page: Page, text: string): Promise<void> => {
  await page.getByRole('textbox', { name: 'Message' }).fill(text);
  await page.keyboard.press('Enter');
};

/** Answers the n-th request with the n-th stream, and returns the bodies of the requests. */
async function answerInTurn(page: Page, streams: readonly string[]): Promise<{ messages: object[]; tools?: object }[]> {
  const bodies: { messages: object[]; tools?: object }[] = [];
  await page.route('**/v1/chat/completions', (route) => {
    bodies.push(route.request().postDataJSON());
    const headers = { 'content-type': 'text/event-stream', 'x-request-id': crypto.randomUUID() };
    return route.fulfill({ headers, body: streams[bodies.length - 1]! });
  });
  return bodies;
}

describe.skipIf(!canRun)('chat', () => {
  test('shows tool calls and continues with the results that the user enters', async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    const call = (index: number, id: string, name: string, args: string) => [
      { tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] },
      ...args.match(/.{1,5}/g)!.map((part) => ({ tool_calls: [{ index, function: { arguments: part } }] })),
    ];
    const bodies = await answerInTurn(page, [
      streamOf([...call(0, 'c1', 'weather', '{"city":"Ulm"}'), ...call(1, 'c2', '<b>time</b>', '{}')], 'tool_calls'),
      streamOf([{ content: 'It is 7 degrees in Ulm.' }]),
      streamOf([{ content: 'You are welcome.' }]),
    ]);
    await page.getByRole('button', { name: 'Generation settings' }).click();
    await page.getByLabel('Tools (JSON)').fill(JSON.stringify(TOOLS));
    await page.getByRole('button', { name: 'Apply' }).click();
    await send(page, 'How warm is it in Ulm?');
    const answer = page.getByRole('article', { name: 'Answer' }).first();
    await answer.getByText('Call: weather').waitFor();
    expect(await answer.getByRole('region', { name: 'Arguments of weather' }).innerText()).toBe(
      '{\n  "city": "Ulm"\n}',
    );
    await answer.getByText('Call: <b>time</b>').waitFor();
    expect(bodies[0]!.tools).toEqual(TOOLS);
    // Both calls require a result.
    await answer.getByLabel('Result of weather').fill('{"celsius":7}');
    await answer.getByRole('button', { name: 'Send results' }).click();
    expect(bodies.length).toBe(1);
    await answer.getByLabel('Result of <b>time</b>').fill('noon');
    expect(await findViolations(page)).toEqual([]);
    await answer.getByRole('button', { name: 'Send results' }).click();
    await page.getByText('It is 7 degrees in Ulm.').waitFor();
    const calls = [
      { id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"city":"Ulm"}' } },
      { id: 'c2', type: 'function', function: { name: '<b>time</b>', arguments: '{}' } },
    ];
    expect(bodies[1]!.messages).toEqual([
      { role: 'user', content: 'How warm is it in Ulm?' },
      { role: 'assistant', content: '', tool_calls: calls },
      { role: 'tool', content: '{"celsius":7}', tool_call_id: 'c1' },
      { role: 'tool', content: 'noon', tool_call_id: 'c2' },
    ]);
    // The results are shown with the calls, and a call closes.
    expect(await answer.getByRole('region', { name: 'Result of weather' }).innerText()).toBe('{\n  "celsius": 7\n}');
    await answer.getByText('Call: weather').click();
    await answer.getByRole('region', { name: 'Arguments of weather' }).waitFor({ state: 'hidden' });
    // They stay in the conversation.
    await send(page, 'Thanks');
    await page.getByText('You are welcome.').waitFor();
    expect(bodies[2]!.messages.slice(0, 4)).toEqual(bodies[1]!.messages);
  });

  test('leaves tool calls without a result out of the next request, which the server accepts', async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    const call = { index: 0, id: 'c1', type: 'function', function: { name: 'weather', arguments: '{}' } };
    await page.route('**/v1/chat/completions', (route) => route.fulfill({ headers: { 'content-type': 'text/event-stream' }, body: streamOf([{ tool_calls: [call] }], 'tool_calls') }), { times: 1 }); // prettier-ignore
    await send(page, 'How warm is it?');
    await page.getByRole('textbox', { name: 'Result of weather' }).waitFor();
    const request = page.waitForRequest('**/v1/chat/completions');
    await send(page, 'Never mind');
    expect((await request).postDataJSON().messages).toEqual([
      { role: 'user', content: 'How warm is it?' },
      { role: 'user', content: 'Never mind' },
    ]);
    await page.getByRole('article', { name: 'Answer' }).nth(1).locator('.answer-details').waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
  });

  test.each([
    ['[{]', 'The tools are not valid JSON'],
    ['{}', 'The tools have to be a list'],
    ['[{"type":"function","function":{"name":"a"}},{"type":"code"}]', 'Tool 2 requires "type": "function"'],
    ['[{"type":"function","function":{"name":"a b"}}]', 'Tool 1 requires a name'],
    ['[{"type":"function","function":{"name":"a","parameters":[]}}]', 'The parameters of tool 1'],
  ])('rejects tool definitions %s', async (json, message) => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    await page.getByRole('button', { name: 'Generation settings' }).click();
    await page.getByLabel('Tools (JSON)').fill(json);
    await page.getByRole('button', { name: 'Apply' }).click();
    await page.getByRole('dialog').getByRole('alert').getByText(message).waitFor();
  });

  test('shows reasoning collapsed, apart from the answer', async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    await answerInTurn(page, [streamOf([{ reasoning_content: 'First, ' }, { reasoning_content: '<i>think</i>.' }, { content: 'Forty-two.' }])]); // prettier-ignore
    await send(page, 'What is it?');
    const answer = page.getByRole('article', { name: 'Answer' });
    await answer.getByText('Forty-two.').waitFor();
    expect(await answer.innerText()).not.toContain('think');
    await answer.getByText('Reasoning', { exact: true }).click();
    await answer.getByText('First, <i>think</i>.').waitFor();
    expect(await drawnText(answer)).toBe('Forty-two.');
  });
});
