import { RuvLLMError } from '../core/errors.ts';
import type { PackageFile } from './npm-content.ts';

/** A checkpoint of a sentence encoder in a package: weights, configuration and tokenizer in one folder. */
export interface PackageCheckpoint {
  readonly weights: PackageFile;
  readonly config: PackageFile;
  readonly tokenizer: PackageFile;
}

/** Conversion holds the weights in memory, so larger models must be converted elsewhere. */
const MAX_CHECKPOINT_BYTES = 1 << 30;

/** The package's only checkpoint, if it has no GGUF and no parts of one. */
export function findCheckpoint(files: readonly PackageFile[]): PackageCheckpoint | null {
  if (files.some(({ path }) => /\.gguf$|\.part[^/]*$/i.test(path))) return null;
  const [weights, ...others] = files.filter(({ path }) => /\.safetensors$/i.test(path));
  if (weights === undefined || others.length > 0) return null;
  const folder = weights.path.slice(0, weights.path.lastIndexOf('/') + 1);
  const find = (name: string) => files.find(({ path }) => path === folder + name);
  const [config, tokenizer] = [find('config.json'), find('tokenizer.json')];
  return config === undefined || tokenizer === undefined ? null : { weights, config, tokenizer };
}

/** The name of a converted checkpoint: the package's, with the new precision. */
export function convertedFileName(packageName: string): string {
  const base = packageName.slice(packageName.lastIndexOf('/') + 1);
  return `${base.replace(/[-_.]fp?(?:16|32)$/i, '')}-q8_0.gguf`;
}

/** Converts a checkpoint to GGUF with 8-bit weights. Takes about two seconds for 45 MB. */
export async function convertCheckpoint(
  { weights, config, tokenizer }: PackageCheckpoint,
  bytesOf: ReadonlyMap<string, Uint8Array>,
  name: string,
): Promise<Uint8Array> {
  const gguf = await import('../gguf/index.ts');
  const json = ({ path }: PackageFile): unknown => {
    try {
      return JSON.parse(new TextDecoder().decode(bytesOf.get(path)));
    } catch (error) {
      throw new RuvLLMError('invalid_model_file', `${name}: ${path} is not JSON`, { cause: error });
    }
  };
  const source = gguf.createMemorySource(bytesOf.get(weights.path)!, weights.path);
  const checkpoint = { config: json(config), files: [gguf.openSafetensors(source)], tokenizerJson: json(tokenizer) };
  const sink = gguf.createMemorySink();
  gguf.writeGguf(gguf.convertSafetensorsBert(checkpoint, { type: 'Q8_0', name }), sink);
  return sink.toBytes();
}

/** Refuses checkpoints that are too large to convert in memory. */
export function checkCheckpointSize(checkpoint: PackageCheckpoint, spec: string): void {
  const sizeBytes = Object.values(checkpoint).reduce((sum, file: PackageFile) => sum + file.sizeBytes, 0);
  if (sizeBytes <= MAX_CHECKPOINT_BYTES) return;
  throw new RuvLLMError(
    'unsupported',
    `${spec}: its checkpoint has ${sizeBytes} bytes; the limit for conversion is ${MAX_CHECKPOINT_BYTES}`,
  );
}
