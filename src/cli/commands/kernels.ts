import { createHash, createPrivateKey } from 'node:crypto';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import type { KernelPackFactory } from '../../kernels/contract.ts';
import { rateSpeed, type SpeedShape } from '../../kernels/measure-kernels.ts';
import { readSmallFile } from '../../platform/node/files/json-file.ts';
import { openModelFile } from '../../platform/node/files/open-model-file.ts';
import { createKernelFactory } from '../../platform/node/kernels/kernel-factory.ts';
import { findSpeeds, openAllowedPacks } from '../../platform/node/kernels/packs/choose-pack.ts';
import { findDistrust, openPack, verifyPack } from '../../platform/node/kernels/packs/external-pack.ts';
import { MANIFEST_NAME, writeManifest } from '../../platform/node/kernels/packs/pack-manifest.ts';
import { readTrust, writeTrust } from '../../platform/node/kernels/packs/pack-trust.ts';
import { describeMachine, readSpeeds } from '../../platform/node/kernels/packs/speed-history.ts';
import { readPublicKey } from '../../platform/node/signing/ed25519.ts';
import { listMatrices } from '../../node/list-matrices.ts';
import { actionCommand } from '../actions.ts';
import { defineFlags } from '../flags.ts';
import { reportKernels } from '../kernel-report.ts';
import { readRunOptions } from '../quantize-input.ts';
import { dayOf } from '../memory/show.ts';
import { escapeLine } from '../safe-text.ts';
import { usageError } from '../usage-error.ts';

const MAX_KEY_BYTES = 16 * 1024;
const MAX_FILE_BYTES = 64 << 20;
/** The matrices of a model with 1 billion parameters. */
const USUAL: readonly SpeedShape[] = [
  { type: 'Q4_0', numRows: 2048, numCols: 2048 },
  { type: 'Q8_0', numRows: 2048, numCols: 2048 },
];

const isPackFolder = (text: string): boolean => existsSync(join(text, MANIFEST_NAME));

function readShapes(path: string | undefined): readonly SpeedShape[] {
  if (path === undefined) return USUAL;
  const gguf = openModelFile(path);
  try {
    return listMatrices(gguf);
  } finally {
    gguf.source.close();
  }
}

/** The kernels of this runtime that work here, the fastest native build only. */
async function openOwnKernels(numThreads: number): Promise<KernelPackFactory[]> {
  const factories: KernelPackFactory[] = [];
  for (const choice of ['native', 'wasm'] as const) {
    try {
      factories.push(await createKernelFactory(choice, { numThreads, warn: () => {} }));
    } catch (error) {
      if (!(error instanceof RuvLLMError)) throw error;
    }
  }
  return factories;
}

export const { flags, help, run } = actionCommand('kernels', {
  list: {
    args: '',
    description: 'list the kernels of this machine, allowed packs, trusted keys and measured speeds',
    async run(context) {
      const { output } = context;
      const { kernels, numThreads } = readRunOptions(context.io);
      const trust = readTrust();
      const machine = describeMachine();
      const own = await reportKernels(kernels, numThreads);
      const refusals = new Map<string, string>();
      await openAllowedPacks({ numThreads }, (name, reason) => refusals.set(name, reason), trust);
      const packs = trust.packs.map((pack) => ({ ...pack, problem: refusals.get(pack.name) ?? null }));
      const speeds = readSpeeds().filter((record) => record.machine === machine);
      output.document({ machine, kernels: own, packs, trustedKeys: trust.keys, speeds });
      output.table(
        ['KERNELS', 'BUILD', '', ''],
        [
          ...own.map(({ name, build, reason, isUsable, isChosen }) => [
            name,
            build ?? '',
            isChosen ? 'used' : isUsable ? 'usable' : 'not usable',
            reason,
          ]),
          ...packs.map(({ name, folder, problem }) => [
            `pack:${name}`,
            '',
            problem === null ? 'usable' : 'refused',
            escapeLine(problem ?? folder),
          ]),
        ],
      );
      for (const { key, name } of trust.keys) output.note(`trusted key ${key} (${escapeLine(name)})`);
      const rows = speeds.map(({ kernels, shape, decodeMs, promptMs, measuredMs }) => [
        kernels,
        shape,
        `${decodeMs.toFixed(2)} ms`,
        `${promptMs.toFixed(2)} ms`,
        dayOf(measuredMs),
      ]);
      if (rows.length > 0) output.table(['MEASURED', 'MATRICES', '1 TOKEN', '64 TOKENS', ''], rows);
    },
  },
  bench: {
    args: '[model]',
    description: 'measure all kernels with the matrices of a GGUF file and record the speeds, by which "auto" chooses',
    async run(context, [path]) {
      const { output } = context;
      const { numThreads } = readRunOptions(context.io);
      const matrices = readShapes(path);
      const packs = await openAllowedPacks({ numThreads }, (name, reason) => output.note(`${name}: ${reason}`));
      const factories = [...(await openOwnKernels(numThreads)), ...packs];
      const speeds = await findSpeeds(factories, { numThreads, matrices, now: () => performance.now(), isFresh: true });
      const fastest = speeds.reduce((best, one) => (rateSpeed(one) < rateSpeed(best) ? one : best));
      output.document({ speeds, fastest: fastest.kernels });
      const rows = speeds.map(({ kernels, decodeMs, promptMs }) => [
        kernels,
        `${decodeMs.toFixed(2)} ms`,
        `${promptMs.toFixed(2)} ms`,
      ]);
      output.table(['KERNELS', '1 TOKEN', '64 TOKENS'], rows);
      output.note(`fastest on ${numThreads} threads: ${fastest.kernels} (${fastest.shape})`);
    },
  },
  verify: {
    args: '<folder>',
    description: 'check manifest, hashes, signature and trust of a pack, and what it computes',
    async run(context, [folder]) {
      const { output } = context;
      const { numThreads } = readRunOptions(context.io);
      const trust = readTrust();
      const pack = verifyPack(folder!);
      const distrust = findDistrust(pack, trust);
      if (distrust === null) await openPack(folder!, trust, { numThreads });
      const { manifest, manifestHash } = pack;
      const { name, version, signature } = manifest;
      output.document({ name, version, key: signature.key, manifestHash, isTrusted: distrust === null, distrust });
      output.lines(`${name} ${version}: the files are those that ${signature.key} has signed`);
      if (distrust === null) output.lines('it is allowed, and computes what the reference computes');
      else output.note(`it would not run: ${distrust}`);
    },
  },
  trust: {
    args: '<key|folder>',
    description: 'trust a public key (Ed25519, base64), or allow a pack that a trusted key has signed',
    flags: defineFlags({ '--name <name>': 'whose key it is' }),
    run({ output, values }, [what]) {
      const trust = readTrust();
      const name = values['--name'] as string | undefined;
      if (!isPackFolder(what!)) {
        const key = readPublicKey(what!);
        const keys = [...trust.keys.filter((one) => one.key !== key), { key, name: name ?? 'unnamed' }];
        writeTrust({ ...trust, keys });
        output.document({ key, name: name ?? 'unnamed' });
        return output.note(`trusted: packs of this key can be allowed with ruvllm kernels trust FOLDER`);
      }
      if (name !== undefined) throw usageError('--name belongs to a key, not to a pack', '--name');
      const { folder, manifest, manifestHash } = verifyPack(what!);
      const allowed = { name: manifest.name, folder, manifestHash };
      const packs = [...trust.packs.filter((one) => one.name !== manifest.name && one.folder !== folder), allowed];
      const distrust = findDistrust({ folder, manifest, manifestHash, files: new Map() }, { ...trust, packs });
      if (distrust !== null)
        throw new RuvLLMError('untrusted', `kernel pack ${folder}: ${distrust}`, { data: { folder } });
      writeTrust({ ...trust, packs });
      output.document(allowed);
      output.note(`allowed: ruvllm run --kernels pack:${manifest.name}; "auto" uses it where it is the fastest`);
    },
  },
  untrust: {
    args: '<key|name>',
    description: 'stop trusting a key with all its packs, or disallow a pack',
    run({ output }, [what]) {
      const trust = readTrust();
      const keys = trust.keys.filter(({ key }) => key !== what);
      const packs = trust.packs.filter(({ name }) => name !== what);
      if (keys.length === trust.keys.length && packs.length === trust.packs.length) {
        throw new RuvLLMError('not_found', `no trusted key or allowed pack ${JSON.stringify(what)}`, {
          data: { what: what! },
        });
      }
      writeTrust({ keys, packs });
      output.document({ removed: what });
      output.note('removed');
    },
  },
  sign: {
    args: '<folder>',
    description: 'write the signed manifest of a pack; all files of the folder belong to it',
    flags: defineFlags({
      '--key <file>': 'private key: Ed25519 in PEM, such as by openssl genpkey -algorithm ed25519',
      '--pack-name <name>': 'name of the pack',
      '--pack-version <version>': 'version of the pack, such as 1.0.0',
      '--entry <file>': 'module that exports createKernelPackFactory; default pack.mjs',
    }),
    run({ output, values }, [folder]) {
      const required = (flag: string): string => {
        const value = values[flag] as string | undefined;
        if (value === undefined) throw usageError(`kernels sign requires ${flag}`, flag);
        return value;
      };
      const path = resolve(folder!);
      const names = readdirSync(path).filter((name) => name !== MANIFEST_NAME);
      const hashOf = (name: string): string =>
        createHash('sha256')
          .update(readSmallFile(join(path, name), MAX_FILE_BYTES))
          .digest('hex');
      const contents = {
        name: required('--pack-name'),
        version: required('--pack-version'),
        entry: (values['--entry'] as string | undefined) ?? 'pack.mjs',
        files: Object.fromEntries(names.map((name) => [name, hashOf(name)])),
      };
      const pem = Buffer.from(readSmallFile(required('--key'), MAX_KEY_BYTES));
      let key;
      try {
        key = createPrivateKey(pem);
      } catch (cause) {
        throw new RuvLLMError('invalid_option', '--key is not a private key in PEM', {
          cause,
          data: { option: '--key' },
        });
      }
      const manifest = writeManifest(contents, key);
      writeFileSync(join(path, MANIFEST_NAME), manifest);
      const { signature } = JSON.parse(manifest) as { signature: { key: string } };
      output.document({ folder: path, key: signature.key, files: names });
      output.lines(signature.key);
      output.note(`signed ${names.length} files; others trust it with: ruvllm kernels trust ${signature.key}`);
    },
  },
});
