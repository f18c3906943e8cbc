"""WordPiece against the Python package tokenizers: tokens and decoded texts of 2,000 texts, and what its trainer and
transformers make of braid's file. Where this Python has no tokenizers, that of BRAID_PEER_PYTHON is taken; where that is not
set either, the test says so and is skipped (77)."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import peer_python

peer_python.need("tokenizers")
import tokenizers

from braid_binary import SOURCE, braid

sys.path.insert(0, str(SOURCE / "tools/reference"))
import wordpiece

TEXT = SOURCE / "tests/tokenize/data/bpe_text.txt"


class WordPiecePeer(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def train(self):
        done = braid("data", "train-wordpiece", "--vocab", "500", "--out", str(self.path), str(TEXT))
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.path / "tokenizer.json"

    def test_tokens_and_decoded_texts_are_equal(self):
        golden = self.path / "golden.json"
        wordpiece.write(golden, 2000)
        done = subprocess.run([os.environ["BRAID_TOKENIZE_TEST"], "--gtest_filter=WordPieceGolden.*"], text=True,
                              capture_output=True, env=os.environ | {"BRAID_WORDPIECE_GOLDEN": str(golden)})
        self.assertEqual(done.returncode, 0, done.stdout[-4000:])
        self.assertIn("[  PASSED  ] 2 tests.", done.stdout)

    def test_the_package_reads_a_trained_file_and_writes_the_same(self):
        file = self.train()
        package = tokenizers.Tokenizer.from_file(str(file))
        self.assertEqual(json.loads(package.to_str()), json.loads(file.read_text()))
        encoded = package.encode("The  stranded, newer text.")
        self.assertEqual((encoded.tokens[0], encoded.tokens[-1]), ("[CLS]", "[SEP]"))
        self.assertEqual(package.decode(encoded.ids), "the stranded, newer text.")

    def test_transformers_reads_a_trained_file(self):
        try:
            import transformers
        except ImportError:
            self.skipTest("this Python has no transformers")
        tokenizer = transformers.BertTokenizerFast(tokenizer_file=str(self.train()))
        self.assertEqual(tokenizer.vocab_size, 500)
        self.assertEqual((tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.mask_token_id), (2, 3, 4))


if __name__ == "__main__":
    unittest.main()
