import { describe, expect, test } from 'vitest';
import { refusalOf } from '../../../../../test/support/refusal-of.ts';
import { echoTool, findApprovals, matchesFilter, mcpToolField } from './mcp-tools.ts';

const TOOL = { type: 'mcp', server_label: 'wiki', server_url: 'https://wiki.example/mcp' };
const read = (more: object = {}) => mcpToolField.read({ ...TOOL, ...more }, 'tools[0]');
const headers = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`x-${index}`, 'a']));

test.each([
  [{}, { label: 'wiki', url: 'https://wiki.example/mcp', headers: {}, allowed: null }],
  [{ server_url: null }, { url: null, headers: {} }],
  [{ headers: { 'X-Key': 'a b\té' } }, { headers: { 'X-Key': 'a b\té' } }],
  [{ headers: headers(32) }, { headers: headers(32) }],
  [{ headers: { ['x'.repeat(128)]: 'y'.repeat(8192) } }, { headers: { ['x'.repeat(128)]: 'y'.repeat(8192) } }],
  [{ authorization: 't' }, { headers: { authorization: 'Bearer t' } }],
  [{ headers: { a: 'b' }, authorization: 't' }, { headers: { a: 'b', authorization: 'Bearer t' } }],
  [{ allowed_tools: ['f'] }, { allowed: { names: ['f'], isReadOnly: null } }],
  [{ allowed_tools: { read_only: true } }, { allowed: { names: null, isReadOnly: true } }],
  [{ connector_id: null }, { label: 'wiki' }],
])('%j', (more, spec) => {
  expect(read(more)).toMatchObject(spec);
});

test.each([
  [{ server_label: null }, 'tools[0].server_label'],
  [{ headers: [] }, 'tools[0].headers'],
  [{ headers: headers(33) }, 'tools[0].headers'],
  [{ headers: { 'a b': 'c' } }, 'tools[0].headers'],
  [{ headers: { a: 3 } }, 'tools[0].headers'],
  [{ headers: { a: 'b\n' } }, 'tools[0].headers'],
  [{ authorization: 'a\nb' }, 'tools[0].authorization'],
  [{ server_url: null, headers: {} }, 'tools[0].headers'],
  [{ server_url: null, authorization: 't' }, 'tools[0].authorization'],
  [{ server_url: null, headers: {}, authorization: 't' }, 'tools[0].headers'],
  [{ require_approval: 'sometimes' }, 'tools[0].require_approval'],
  [{ allowed_tools: [''] }, 'tools[0].allowed_tools[0]'],
  [{ connector_id: 'c' }, 'tools[0].connector_id'],
])('%j is refused', (more, param) => {
  const refused = refusalOf(() => read(more));
  expect(refused).toMatchObject({ status: 400, param });
});

test.each([
  [{ names: null, isReadOnly: null }, true],
  [{ names: ['f', 'g'], isReadOnly: null }, true],
  [{ names: ['g'], isReadOnly: null }, false],
  [{ names: null, isReadOnly: true }, true],
  [{ names: null, isReadOnly: false }, false],
  [{ names: ['f'], isReadOnly: false }, false],
  [{ names: ['g'], isReadOnly: true }, false],
])('the filter %j and a tool f that only reads: %j', (filter, isMatch) => {
  expect(matchesFilter(filter, { name: 'f', isReadOnly: true })).toBe(isMatch);
});

describe('approval', () => {
  const only = (...names: string[]) => ({ tool_names: names });

  test.each([
    [undefined, true],
    ['always', true],
    ['never', false],
    [{}, true],
    [{ always: only('f') }, true],
    [{ always: only('g') }, true],
    [{ never: only('f') }, false],
    [{ never: only('g') }, true],
    [{ never: { read_only: true } }, false],
    [{ always: only('f'), never: only('f') }, true],
    [{ always: only('g'), never: only('f') }, false],
  ])('%j is needed for a tool f that only reads: %j', (require_approval, isNeeded) => {
    expect(read({ require_approval }).needsApproval({ name: 'f', isReadOnly: true })).toBe(isNeeded);
  });
});

test('a tool is repeated without its secrets', () => {
  expect(echoTool({ ...TOOL, headers: { a: 'b' }, authorization: 't' })).toEqual(TOOL);
  const other = { type: 'function', headers: 1 };
  expect(echoTool(other)).toBe(other);
  expect(echoTool('x')).toBe('x');
});

test('approvals are found among items, without broken ones', () => {
  const request = { type: 'mcp_approval_request', id: 'r1', server_label: 'wiki', name: 'f', arguments: '{}' };
  const response = { type: 'mcp_approval_response', approval_request_id: 'r1', approve: true };
  const { requests, responses } = findApprovals([
    'text',
    null,
    request,
    { ...request, id: 'r2', name: 3 },
    { ...request, id: 'r3', type: 'mcp_call' },
    response,
    { ...response, approval_request_id: 'r4', approve: false },
    { ...response, approval_request_id: 'r5', approve: 'true' },
    { ...response, approval_request_id: 6 },
    { ...response, approval_request_id: 'r7', type: 'message' },
  ]);
  expect([...requests]).toEqual([['r1', { id: 'r1', label: 'wiki', name: 'f', arguments: '{}' }]]);
  expect([...responses]).toEqual([
    ['r1', true],
    ['r4', false],
    ['r5', false],
  ]);
});
