// The engine's script: in a worker it answers the page, in a bare V8 it draws pictures.

import './headless.ts';
import { serve } from './engine/worker.ts';

if (typeof postMessage === 'function') serve(self as unknown as Parameters<typeof serve>[0]);
