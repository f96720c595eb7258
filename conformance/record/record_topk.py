"""Records torch.topk with many equal scores: python record_topk.py > crates/core/src/select/top/topk.json"""
import json, random, torch
random.seed(3)
cases = []
for n, k, levels in [(5, 2, 2), (6, 3, 1), (10, 4, 3), (15, 6, 2), (15, 6, 1), (20, 8, 3), (40, 17, 4), (40, 30, 2), (100, 2, 3), (128, 2, 2),
                     (128, 2, 1), (256, 4, 2), (256, 4, 1), (300, 8, 3), (512, 8, 2), (512, 8, 1), (700, 20, 3), (700, 10, 5), (600, 6, 2)]:
    for _ in range(3):
        scores = [random.randrange(levels) for _ in range(n)]
        best, places = torch.topk(torch.tensor(scores, dtype=torch.float32), k)
        cases.append({"scores": "".join(map(str, scores)), "places": places.tolist()})
print(json.dumps(cases, separators=(",", ":")))
