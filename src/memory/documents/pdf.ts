import { RuvLLMError } from '../../core/errors.ts';

export async function readPdf(_bytes: Uint8Array): Promise<readonly string[]> {
  throw new RuvLLMError('unsupported', 'PDF files cannot be read');
}
