import { describeKernelPack } from '../pack.contract.ts';
import { createReferencePackFactory } from './reference-pack.ts';

const factory = createReferencePackFactory();
describeKernelPack('reference', () => factory);
