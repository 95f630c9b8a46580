// The only file that sets the exit code. Heavy imports come after the --version check.
import { readFileSync } from 'node:fs';
import { PACKAGE_FOLDER } from '../platform/node/files/package-folder.ts';

function packageVersion(): string {
  const text = readFileSync(new URL('package.json', PACKAGE_FOLDER), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

const args = process.argv.slice(2);
if (['--version', '-V', '-v', 'version'].includes(args[0] ?? '')) {
  const version = packageVersion();
  process.stdout.write(args.includes('--json') ? `${JSON.stringify({ version })}\n` : `${version}\n`);
} else {
  const { runProcess } = await import('./run-process.ts');
  process.exitCode = await runProcess(args, packageVersion());
}
