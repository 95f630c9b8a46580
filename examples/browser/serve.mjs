// Serves this folder and the library on http://localhost:8090/. node examples/browser/serve.mjs [PORT]
import { createReadStream, existsSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
// The files to copy beside the page for any other static server.
const library = dirname(fileURLToPath(import.meta.resolve('ruvllm/browser')));
const TYPES = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm',
};
const HEADERS = {
  // These two isolate the page: without them it runs on one thread.
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-embedder-policy': 'require-corp',
};

function findFile(path) {
  const [folder, name] = path.startsWith('/ruvllm/') ? [library, path.slice('/ruvllm/'.length)] : [here, path.slice(1)];
  const file = join(folder, normalize(`/${name || 'index.html'}`));
  return existsSync(file) && statSync(file).isFile() ? file : null;
}

const server = createServer((request, response) => {
  const file = findFile(decodeURIComponent(new URL(request.url, 'http://localhost').pathname));
  if (file === null) return void response.writeHead(404, HEADERS).end();
  response.writeHead(200, { ...HEADERS, 'content-type': TYPES[extname(file)] ?? 'application/octet-stream' });
  createReadStream(file).pipe(response);
});
server.listen(Number(process.argv[2] ?? 8090), '127.0.0.1', () => {
  console.log(`http://localhost:${server.address().port}/`);
});
