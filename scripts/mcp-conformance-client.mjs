// The client of check-mcp.mjs: node mcp-conformance-client.mjs URL lists the tools of a server and calls the one that adds.
import { openMcpServers } from '../dist/index.js';

const servers = await openMcpServers({ suite: { url: process.argv.at(-1), consent: 'allow' } });
try {
  const { signal } = new AbortController();
  const tools = await servers.tools();
  const add = tools.find(({ origin }) => origin.tool === 'add_numbers');
  if (add !== undefined) console.log(await add.call({ a: 5, b: 3 }, signal));
} finally {
  await servers.close();
}
