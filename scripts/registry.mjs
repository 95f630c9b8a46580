// Asks the npm registry which versions exist, through npm, which knows the proxies, tokens and scopes of this machine.
import { execFile } from 'node:child_process';

const AT_ONCE = 2;

function view(spec) {
  const args = ['view', spec, 'version', '--json', '--fetch-retries=1', '--fetch-retry-mintimeout=500'];
  return new Promise((resolve) => {
    execFile('npm', args, { encoding: 'utf8', shell: process.platform === 'win32' }, (_, stdout, stderr) => {
      let answer;
      try {
        answer = JSON.parse(stdout || 'null');
      } catch {
        answer = { error: { code: 'EJSONPARSE', summary: stderr.trim().split('\n').at(-1) } };
      }
      if (answer?.error && answer.error.code !== 'E404') {
        resolve({ spec, state: 'unreachable', reason: answer.error.code ?? answer.error.summary });
      } else resolve({ spec, state: typeof answer === 'string' ? 'present' : 'absent', reason: null });
    });
  });
}

/** `{ spec, state, reason }` of each `name@version`: present, absent, or unreachable if the registry did not answer. */
export async function askRegistry(specs) {
  const queue = [...specs.entries()];
  const answers = [];
  const worker = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) answers[next[0]] = await view(next[1]);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return answers;
}
