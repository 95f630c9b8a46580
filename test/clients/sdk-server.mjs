// A server of the official SDK over stdio; its tools are also those of the server over HTTP.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { z } from 'zod';

export function addTools(server) {
  server.registerTool(
    'add',
    { description: 'Adds.', inputSchema: { a: z.number(), b: z.number() }, annotations: { readOnlyHint: true } },
    async ({ a, b }) => ({ content: [{ type: 'text', text: String(a + b) }] }),
  );
  server.registerTool('fail', { description: 'Fails.', inputSchema: {} }, async () => {
    throw new Error('it failed');
  });
}

if (import.meta.filename === process.argv[1]) {
  const server = new McpServer({ name: 'sdk', version: '1' });
  addTools(server);
  await server.connect(new StdioServerTransport());
}
