"""Which tests cover sources that have none of their own, for tidy.py."""

# Folders, each followed by the sources in it.
TESTED_BY = {
    "src/analyze/analysis_test.cpp": "src/analyze/ analyze answer study",
    "src/align/align_test.cpp": """src/align/ axes evidence flattened merged permuted same_shape
                                   truncated unit_axes""",
    "src/align/dims_test.cpp": "src/align/ named",
    "src/align/whole_test.cpp": "src/align/ stacked src/tensor/ shards",
    "src/compare/compare_test.cpp": "src/compare/ measure metrics traversal ulp",
    "src/compare/kernels/kernels_test.cpp": "src/compare/kernels/ reference steps sums vector",
    "src/dumps/layouts_test.cpp": """src/dumps/ flax forward_hook grammar hidden_states llama_cpp
                                   module_hooks msprobe onnx_values sglang_dumper tensorrt_llm
                                   transformer_engine transformer_lens""",
    "src/dumps/arrange_test.cpp": "src/dumps/ modules passes",
    "src/diagnose/verdict/carried_test.cpp": """src/diagnose/sample/ case
                                   src/diagnose/replay/ norm_replay""",
    "src/diagnose/diagnosis_test.cpp": """src/diagnose/ diagnose
                                   src/diagnose/graph/ heads src/diagnose/sample/ fit matrix
                                   src/diagnose/replay/ attention rotation
                                   src/diagnose/hypotheses/ attention_mask attention_scale
                                   axis_permutation block_permutation blocks cast
                                   head_mapping interleave nonfinite norm_epsilon
                                   norm_weight offset operator other_tensor precision_noise
                                   quantization region residual_missing rope_frequency
                                   rope_pairing rope_position row_permutation scale
                                   token_shift""",
    "src/diagnose/hypotheses/explain_step_test.cpp": """src/diagnose/hypotheses/ score
                                   src/diagnose/operators/ affine attention attention_changes
                                   attention_search batch_norm combine context convolution dropped
                                   dumped elementwise embedding linear norm norm_fit operator
                                   parameters pooling quantised rotary sources sum unmerged
                                   windows""",
    "src/diagnose/verdict/judge_test.cpp": "src/diagnose/noise/ casts roundoff structure",
    "src/analyze/quantization_test.cpp": """src/analyze/ code_book find_quantized layer_inputs
                                   quantization_grid""",
    "src/analyze/edit_test.cpp": "src/analyze/ base_merge edit_tests lines",
    "src/report/analyses_test.cpp": "src/report/ text_chart",
    "src/diagnose/replay/linear_replay_test.cpp": """src/diagnose/replay/ mlp_replay
                                   src/diagnose/hypotheses/ reduction""",
    "src/formats/archive_test.cpp": "src/formats/ member_name shards",
    "src/formats/codecs_test.cpp": "src/formats/ blosc",
    "src/formats/gguf_test.cpp": "src/tensor/ blocks",
    "src/formats/onnx_test.cpp": "src/formats/ onnx_tensor",
    "src/formats/tensorflow_test.cpp": "src/formats/ tf_tensor",
    "src/formats/pickle/machine_test.cpp": """src/formats/pickle/ globals graph machine_objects
                                              machine_values names""",
    "src/formats/pickle/rebuild_test.cpp": """src/formats/pickle/ numpy_rebuild quantized sparse
                                              torch_file torch_rebuild""",
    "src/formats/torch_files_test.cpp": "src/formats/ pickle torch_legacy torch_zip",
    "src/logits/compare_logits_test.cpp": "src/logits/ causes gates line_up measure row sequences",
    "src/match/match_test.cpp": "src/match/ exact filter fingerprint layer_stage",
    "src/layout/pair_views_test.cpp": "src/layout/ peer_layouts",
    "src/packed/packed_test.cpp": """src/packed/ awq bitsandbytes gptq packed_integers scaled
                                    small_floats""",
    "src/cli/merge_test.cpp": "src/cli/ part",
    "src/digest/digest_test.cpp": "src/digest/ digest_report",
    "src/report/csv_test.cpp": "src/report/ csv_row",
    "src/report/logits_report_test.cpp": "src/report/ predictions",
    "src/match/strategies_test.cpp": "src/match/ by_name meaning",
    "src/report/text_test.cpp": "src/report/ divergence_text",
    "src/report/wire_test.cpp": "src/report/ wire_pair wire_report",
    "src/report/compare_document_test.cpp": "src/report/ answer_blocks pages review",
    "src/report/document_test.cpp": "src/report/ html html_page markdown",
    "src/analyze/trend_test.cpp": "src/analyze/ convergence_rules",
    "src/report/changes_test.cpp": "src/report/ json_values selection",
    "src/tensor/reader_test.cpp": "src/tensor/ catalog dtype tensor",
    "tests/conversion_test.py": "src/report/ conversion_python",
    "src/remote/sigv4_test.cpp": "src/remote/ hf s3",
    "tests/remote_test.py": """src/remote/ files scheme transport src/base/ remote_files
                               src/report/ unread src/tensor/ stored src/cli/ options_remote""",
    "tests/smoke_test.py": "src/ pair_row pipeline",
}
